// RUN: shoal-opt %s --split-input-file --nn-mixed-precision --verify-diagnostics | FileCheck %s -enable-var-scope

// The parameter is a master, read once through its copy; products and activation functions are bf16, the sum is f32.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32> {nn.input = "x"}, %[[W:[^:]*]]: tensor<4x2xf32> {nn.master, nn.param
// CHECK: %[[COPY:.*]] = nn.cast %[[W]] {exec.class = "param"} : tensor<4x2xf32> -> tensor<4x2xbf16>
// CHECK: %[[NARROW:.*]] = nn.cast %[[X]] {nn.layer = "h"} : tensor<8x4xf32> -> tensor<8x4xbf16>
// CHECK: %[[M:.*]] = nn.matmul %[[NARROW]], %[[COPY]] {nn.layer = "h"} : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
// CHECK: %[[T:.*]] = nn.tanh %[[M]] : tensor<8x2xbf16>
// CHECK: %[[WIDE:.*]] = nn.cast %[[T]] : tensor<8x2xbf16> -> tensor<8x2xf32>
// CHECK: %[[SUM:.*]] = nn.reduce sum %[[WIDE]] dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
// CHECK: return %[[SUM]], %{{.*}} : tensor<f32>, tensor<8x2xf32>
func.func @layer(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<8x2xf32> {nn.output = "y"}) {
  %0 = nn.matmul %x, %w {nn.layer = "h"} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.tanh %0 : tensor<8x2xf32>
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
  return %2, %1 : tensor<f32>, tensor<8x2xf32>
}

// -----

// A table of parameters is looked up in bf16. Norms of rows keep their statistics in f32, the loss of bf16 logits is f32.
// CHECK-LABEL: func.func @tokens
// CHECK: %[[ROWS:.*]] = nn.embedding %{{.*}}, %{{.*}} : (tensor<7x4xbf16>, tensor<2x3xi64>) -> tensor<2x3x4xbf16>
// CHECK: %[[Y:.*]], %{{.*}} = nn.rms_norm %[[ROWS]], %{{.*}} eps = 1.000000e-05 : tensor<2x3x4xbf16>, tensor<4xbf16>
// CHECK: %[[LOGITS:.*]] = nn.tensordot %[[Y]], %{{.*}} axes = 1 {transpose_b} : (tensor<2x3x4xbf16>, tensor<7x4xbf16>) -> tensor<2x3x7xbf16>
// CHECK: nn.cross_entropy sum %[[LOGITS]], %{{.*}} : (tensor<2x3x7xbf16>, tensor<2x3xi64>) -> tensor<f32>
func.func @tokens(%ids: tensor<2x3xi64> {nn.input = "ids"}, %labels: tensor<2x3xi64> {nn.input = "labels"},
    %wte: tensor<7x4xf32> {nn.param = #nn.param<"wte", init = zeros>}, %g: tensor<4xf32> {nn.param = #nn.param<"g", init = ones>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.embedding %wte, %ids : (tensor<7x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %1, %rstd = nn.rms_norm %0, %g eps = 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32>
  %2 = nn.tensordot %1, %wte axes = 1 {transpose_b} : (tensor<2x3x4xf32>, tensor<7x4xf32>) -> tensor<2x3x7xf32>
  %3, %lse = nn.cross_entropy sum %2, %labels : (tensor<2x3x7xf32>, tensor<2x3xi64>) -> tensor<f32>
  return %3 : tensor<f32>
}

// -----

// A constant joins without being rounded itself: the op is f32 inside, its result is stored as bf16. A statistic of
// activations makes f32 of what meets it. Queries of attention are bf16, its log-sum-exps are not.
// CHECK-LABEL: func.func @joined
// CHECK-DAG: %[[C:.*]] = nn.constant dense<1.000000e-01> : tensor<f32>
// CHECK-DAG: %[[Q:.*]] = nn.cast %{{.*}} {exec.class = "param"} : tensor<1x2x1x1x4xf32> -> tensor<1x2x1x1x4xbf16>
// CHECK: %[[WIDE:.*]] = nn.cast %[[Q]] : tensor<1x2x1x1x4xbf16> -> tensor<1x2x1x1x4xf32>
// CHECK: %[[SCALED:.*]] = nn.mul %[[WIDE]], %[[C]] : (tensor<1x2x1x1x4xf32>, tensor<f32>) -> tensor<1x2x1x1x4xf32>
// CHECK: %[[STORED:.*]] = nn.cast %[[SCALED]] : tensor<1x2x1x1x4xf32> -> tensor<1x2x1x1x4xbf16>
// CHECK: %[[O:.*]], %{{.*}} = nn.attention %[[STORED]], %{{.*}}, %{{.*}} scale = 1.000000e+00 : (tensor<1x2x1x1x4xbf16>, tensor<1x2x1x4xbf16>, tensor<1x2x1x4xbf16>) -> tensor<1x2x1x1x4xbf16>
// CHECK: %[[OWIDE:.*]] = nn.cast %[[O]] : tensor<1x2x1x1x4xbf16> -> tensor<1x2x1x1x4xf32>
// CHECK: %[[MOST:.*]] = nn.reduce max %[[OWIDE]]
// CHECK: %[[OFF:.*]] = nn.sub %[[OWIDE]], %[[MOST]] : (tensor<1x2x1x1x4xf32>, tensor<1x1x1x1x1xf32>) -> tensor<1x2x1x1x4xf32>
// CHECK: nn.reduce sum %[[OFF]]
func.func @joined(%x: tensor<1x2x1x4xf32> {nn.input = "x"}, %q: tensor<1x2x1x1x4xf32> {nn.param = #nn.param<"q", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %c = nn.constant dense<0.1> : tensor<f32>
  %0 = nn.mul %q, %c : (tensor<1x2x1x1x4xf32>, tensor<f32>) -> tensor<1x2x1x1x4xf32>
  %1, %lse = nn.attention %0, %x, %x scale = 1.0 : (tensor<1x2x1x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> tensor<1x2x1x1x4xf32>
  %2 = nn.reduce max %1 dims = [0, 1, 2, 3, 4] {keep_dims} : tensor<1x2x1x1x4xf32> -> tensor<1x1x1x1x1xf32>
  %3 = nn.sub %1, %2 : (tensor<1x2x1x1x4xf32>, tensor<1x1x1x1x1xf32>) -> tensor<1x2x1x1x4xf32>
  %4 = nn.reduce sum %3 dims = [0, 1, 2, 3, 4] : tensor<1x2x1x1x4xf32> -> tensor<f32>
  return %4 : tensor<f32>
}

// -----

// An update in the file is one of the master.
// CHECK-LABEL: func.func @updated
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {{.*}}, %[[W:[^:]*]]: tensor<4xf32> {nn.master
// CHECK: nn.sgd_update %[[W]], %{{.*}} lr = %{{.*}} : tensor<4xf32>, tensor<f32>
func.func @updated(%x: tensor<4xf32> {nn.input = "x"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.updates = "w"}) {
  %lr = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  %2 = nn.sgd_update %w, %x lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %1, %2 : tensor<f32>, tensor<4xf32>
}

// -----

dist.mesh @mesh <["data"=2]>
func.func @region(%x: tensor<4x2xf32> {nn.input = "x"}, %w: tensor<2xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{holds a region, in which activations are not made bf16; give the step without it (and its micro-batches by --microbatches)}}
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%part: tensor<2x2xf32>):
    %1 = nn.mul %part, %w : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    %2 = nn.reduce sum %1 dims = [0, 1] : tensor<2x2xf32> -> tensor<f32>
    dist.yield %2 : tensor<f32>
  } : (tensor<4x2xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
