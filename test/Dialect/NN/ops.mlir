// RUN: shoal-opt %s --verify-roundtrip | FileCheck %s

// Arguments and results of a model say what they are; floats keep every digit.
// CHECK-LABEL: func.func @roles
// CHECK-SAME: nn.input = "x"
// CHECK-SAME: nn.input = #nn.input<"table", unbatched>
// CHECK-SAME: nn.param = #nn.param<"a", init = kaiming_uniform>
// CHECK-SAME: nn.param = #nn.param<"b", init = constant(0.1)>
// CHECK-SAME: nn.param = #nn.param<"c", init = uniform(-1.0e-05, 3.0)>
// CHECK-SAME: nn.param = #nn.param<"d", init = normal(0.0, 0.02)>
// CHECK-SAME: nn.state = #nn.state<"a.m", of = "a", init = 0.0>
// CHECK-SAME: nn.step
// CHECK-SAME: nn.valid_rows
// CHECK-SAME: nn.loss
// CHECK-SAME: nn.output = "out"
// CHECK-SAME: nn.metric = "accuracy"
// CHECK-SAME: nn.grad = "a"
// CHECK-SAME: nn.updates = "a.m"
// CHECK-SAME: nn.updates = "step"
func.func @roles(%x: tensor<8x4xf32> {nn.input = "x"}, %t: tensor<3xi64> {nn.input = #nn.input<"table", unbatched>},
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = kaiming_uniform>},
    %b: tensor<4xf32> {nn.param = #nn.param<"b", init = constant(0.1)>},
    %c: tensor<4xf32> {nn.param = #nn.param<"c", init = uniform(-0.00001, 3.0)>},
    %d: tensor<4xf32> {nn.param = #nn.param<"d", init = normal(0.0, 0.02)>},
    %m: tensor<4xf32> {nn.state = #nn.state<"a.m", of = "a", init = 0.0>},
    %step: tensor<i64> {nn.step}, %valid: tensor<i64> {nn.valid_rows}, %s: tensor<f32>)
    -> (tensor<f32> {nn.loss}, tensor<8x4xf32> {nn.output = "out"}, tensor<f32> {nn.metric = "accuracy"},
        tensor<4xf32> {nn.grad = "a"}, tensor<4xf32> {nn.updates = "a.m"}, tensor<i64> {nn.updates = "step"}) {
  return %s, %x, %s, %a, %m, %step : tensor<f32>, tensor<8x4xf32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>
}

// Elementwise ops broadcast as numpy does.
// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>, %i: tensor<4xi64>) {
  // CHECK: nn.add %{{.*}}, %{{.*}} {nn.layer = "h.0"} : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %0 = nn.add %a, %b {nn.layer = "h.0"} : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.sub
  %1 = nn.sub %i, %i : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  // CHECK: nn.mul
  %2 = nn.mul %a, %0 : (tensor<2x1x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.div
  %3 = nn.div %0, %b : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.maximum
  %4 = nn.maximum %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.minimum
  %5 = nn.minimum %i, %i : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  // CHECK: nn.neg
  %6 = nn.neg %a : tensor<2x1x4xf32>
  // CHECK: nn.exp
  %7 = nn.exp %a : tensor<2x1x4xf32>
  // CHECK: nn.log
  %8 = nn.log %a : tensor<2x1x4xf32>
  // CHECK: nn.sqrt
  %9 = nn.sqrt %a : tensor<2x1x4xf32>
  // CHECK: nn.rsqrt
  %10 = nn.rsqrt %a : tensor<2x1x4xf32>
  // CHECK: nn.tanh
  %11 = nn.tanh %a : tensor<2x1x4xf32>
  // CHECK: nn.relu
  %12 = nn.relu %a : tensor<2x1x4xf32>
  // CHECK: nn.sigmoid
  %16 = nn.sigmoid %a : tensor<2x1x4xf32>
  // CHECK: nn.silu
  %17 = nn.silu %a : tensor<2x1x4xf32>
  // CHECK: nn.erf
  %18 = nn.erf %a : tensor<2x1x4xf32>
  // CHECK: nn.sin
  %19 = nn.sin %a : tensor<2x1x4xf32>
  // CHECK: nn.cos
  %20 = nn.cos %a : tensor<2x1x4xf32>
  // CHECK: nn.erfc
  %erfc = nn.erfc %a : tensor<2x1x4xf32>
  // CHECK: nn.gelu tanh %{{.*}} : tensor<2x1x4xf32>
  %21 = nn.gelu tanh %a : tensor<2x1x4xf32>
  // CHECK: nn.gelu erf
  %22 = nn.gelu erf %a : tensor<2x1x4xf32>
  // CHECK: nn.compare ge %{{.*}} -> tensor<2x3x4xi1>
  %13 = nn.compare ge %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xi1>
  // CHECK: nn.select
  %14 = nn.select %13, %a, %b : (tensor<2x3x4xi1>, tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  // CHECK: nn.cast %{{.*}} : tensor<4xi64> -> tensor<4xbf16>
  %15 = nn.cast %i : tensor<4xi64> -> tensor<4xbf16>
  // CHECK: nn.cast %{{.*}} of_terms : tensor<4xbf16> -> tensor<4xf32>
  %cast_of_terms = nn.cast %15 of_terms : tensor<4xbf16> -> tensor<4xf32>
  return
}

// A mask's fill may be an infinity, its offset is optional.
// CHECK-LABEL: func.func @mask
func.func @mask(%x: tensor<8x4xf32>, %i: tensor<8xi64>, %limit: tensor<i64>, %offset: tensor<i64>) {
  // CHECK: nn.mask %{{.*}} dim = 0 limit = %{{.*}} fill = 0xFFF0000000000000 : tensor<8x4xf32>
  %0 = nn.mask %x dim = 0 limit = %limit fill = 0xFFF0000000000000 : tensor<8x4xf32>
  // CHECK: nn.mask %{{.*}} dim = 0 limit = %{{.*}} offset = %{{.*}} fill = -1.000000e+02 : tensor<8xi64>
  %1 = nn.mask %i dim = 0 limit = %limit offset = %offset fill = -100.0 : tensor<8xi64>
  return
}

// Ops that change the shape.
// CHECK-LABEL: func.func @shape
func.func @shape(%x: tensor<6x4xf32>, %start: tensor<i64>) {
  // CHECK: nn.reshape
  %0 = nn.reshape %x : tensor<6x4xf32> -> tensor<2x12xf32>
  // CHECK: nn.transpose %{{.*}} [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  %1 = nn.transpose %x [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
  // CHECK: nn.broadcast
  %2 = nn.broadcast %x : tensor<6x4xf32> -> tensor<3x6x4xf32>
  // CHECK: nn.slice %{{.*}} dim = 0 start = 2
  %3 = nn.slice %x dim = 0 start = 2 : tensor<6x4xf32> -> tensor<3x4xf32>
  // CHECK: nn.pad %{{.*}} dim = 1 low = 1
  %4 = nn.pad %x dim = 1 low = 1 : tensor<6x4xf32> -> tensor<6x8xf32>
  // CHECK: nn.dynamic_slice %{{.*}} dim = 0 start = %{{.*}} : tensor<6x4xf32> -> tensor<2x4xf32>
  %5 = nn.dynamic_slice %x dim = 0 start = %start : tensor<6x4xf32> -> tensor<2x4xf32>
  // CHECK: nn.dynamic_update_slice %{{.*}}, %{{.*}} dim = 0 start = %{{.*}} : tensor<6x4xf32>, tensor<2x4xf32>
  %7 = nn.dynamic_update_slice %x, %5 dim = 0 start = %start : tensor<6x4xf32>, tensor<2x4xf32>
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim = 0 : (tensor<6x4xf32>, tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<14x4xf32>
  %8 = nn.concat %x, %5, %7 dim = 0 : (tensor<6x4xf32>, tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<14x4xf32>
  // CHECK: nn.iota dim = 1 : tensor<4x8xi64>
  %9 = nn.iota dim = 1 : tensor<4x8xi64>
  // CHECK: nn.constant dense<[1, 2]> : tensor<2xi32>
  %6 = nn.constant dense<[1, 2]> : tensor<2xi32>
  return
}

// Matrix products with transposes, batches, a shared right side, and a sum over batches.
// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<5x2x3xf32>, %b: tensor<5x3x4xf32>, %w: tensor<4x3xf32>, %g: tensor<5x2x4xf32>) {
  // CHECK: nn.matmul
  %0 = nn.matmul %a, %b : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>
  // CHECK: nn.matmul %{{.*}} {transpose_b}
  %1 = nn.matmul %a, %w {transpose_b} : (tensor<5x2x3xf32>, tensor<4x3xf32>) -> tensor<5x2x4xf32>
  // CHECK: nn.matmul %{{.*}} {sum_batch, transpose_a}
  %2 = nn.matmul %g, %a {transpose_a, sum_batch} : (tensor<5x2x4xf32>, tensor<5x2x3xf32>) -> tensor<4x3xf32>
  return
}

// Products over several dimensions: of heads and their elements, an outer product, a scalar.
// CHECK-LABEL: func.func @tensordot
func.func @tensordot(%x: tensor<5x2x6xf32>, %w: tensor<6x3x4xf32>, %h: tensor<5x2x3x4xf32>) {
  // CHECK: nn.tensordot %{{.*}}, %{{.*}} axes = 1 : (tensor<5x2x6xf32>, tensor<6x3x4xf32>) -> tensor<5x2x3x4xf32>
  %0 = nn.tensordot %x, %w axes = 1 : (tensor<5x2x6xf32>, tensor<6x3x4xf32>) -> tensor<5x2x3x4xf32>
  // CHECK: nn.tensordot %{{.*}}, %{{.*}} axes = 2 {transpose_b}
  %1 = nn.tensordot %h, %w axes = 2 {transpose_b} : (tensor<5x2x3x4xf32>, tensor<6x3x4xf32>) -> tensor<5x2x6xf32>
  // CHECK: nn.tensordot %{{.*}}, %{{.*}} axes = 2 {transpose_a} : (tensor<5x2x6xf32>, tensor<5x2x3x4xf32>) -> tensor<6x3x4xf32>
  %2 = nn.tensordot %x, %h axes = 2 {transpose_a} : (tensor<5x2x6xf32>, tensor<5x2x3x4xf32>) -> tensor<6x3x4xf32>
  // CHECK: nn.tensordot %{{.*}}, %{{.*}} axes = 0 : (tensor<5x2x6xf32>, tensor<6x3x4xf32>) -> tensor<5x2x6x6x3x4xf32>
  %3 = nn.tensordot %x, %w axes = 0 : (tensor<5x2x6xf32>, tensor<6x3x4xf32>) -> tensor<5x2x6x6x3x4xf32>
  // CHECK: nn.tensordot %{{.*}}, %{{.*}} axes = 3 {transpose_a, transpose_b} : (tensor<6x3x4xf32>, tensor<6x3x4xf32>) -> tensor<f32>
  %4 = nn.tensordot %w, %w axes = 3 {transpose_a, transpose_b} : (tensor<6x3x4xf32>, tensor<6x3x4xf32>) -> tensor<f32>
  return
}

// Rows of a table by their numbers, of the whole table and of a shard of it, and their gradient.
// CHECK-LABEL: func.func @embedding
func.func @embedding(%t: tensor<7x6xf32>, %i: tensor<5x2xi64>, %n: tensor<3xi32>, %o: tensor<i64>, %ct: tensor<5x2x6xf32>) {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : (tensor<7x6xf32>, tensor<5x2xi64>) -> tensor<5x2x6xf32>
  %0 = nn.embedding %t, %i : (tensor<7x6xf32>, tensor<5x2xi64>) -> tensor<5x2x6xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} offset = %{{.*}} vocab = 20 : (tensor<7x6xf32>, tensor<3xi32>) -> tensor<3x6xf32>
  %1 = nn.embedding %t, %n offset = %o vocab = 20 : (tensor<7x6xf32>, tensor<3xi32>) -> tensor<3x6xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} : (tensor<5x2xi64>, tensor<5x2x6xf32>) -> tensor<7x6xf32>
  %2 = nn.embedding_grad %i, %ct : (tensor<5x2xi64>, tensor<5x2x6xf32>) -> tensor<7x6xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} offset = %{{.*}} : (tensor<5x2xi64>, tensor<5x2x6xf32>) -> tensor<3x6xf32>
  %3 = nn.embedding_grad %i, %ct offset = %o : (tensor<5x2xi64>, tensor<5x2x6xf32>) -> tensor<3x6xf32>
  return
}

// A parameter that files hold in another shape.
// CHECK-LABEL: func.func @file_shape
// CHECK-SAME: #nn.param<"w", init = normal(0.0, 0.02), file = [6, 12]>
// CHECK-SAME: #nn.param<"b", init = zeros, file = [12]>
func.func @file_shape(%w: tensor<6x3x4xf32> {nn.param = #nn.param<"w", init = normal(0.0, 0.02), file = [6, 12]>},
    %b: tensor<3x4xf32> {nn.param = #nn.param<"b", init = zeros, file = [12]>}) {
  return
}

// Reductions, softmax, losses.
// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<8x4xf32>, %y: tensor<8xi64>, %s: tensor<f32>) {
  // CHECK: nn.reduce max %{{.*}} dims = [1] {keep_dims} : tensor<8x4xf32> -> tensor<8x1xf32>
  %0 = nn.reduce max %x dims = [1] {keep_dims} : tensor<8x4xf32> -> tensor<8x1xf32>
  // CHECK: nn.reduce mean %{{.*}} dims = [0, 1]
  %1 = nn.reduce mean %x dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  // CHECK: nn.softmax %{{.*}} dim = 1
  %2 = nn.softmax %x dim = 1 : tensor<8x4xf32>
  // CHECK: nn.log_softmax
  %3 = nn.log_softmax %x dim = 1 : tensor<8x4xf32>
  // CHECK: nn.mse_loss sum
  %4 = nn.mse_loss sum %x, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  // CHECK: nn.cross_entropy mean %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8xi64>)
  %5, %lse5 = nn.cross_entropy mean %x, %y : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  // CHECK: nn.cross_entropy sum %{{.*}}, %{{.*}} ignore_index = 0
  %6, %lse6 = nn.cross_entropy sum %x, %y ignore_index = 0 : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  // CHECK: nn.cross_entropy mean %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32>)
  %7, %lse7 = nn.cross_entropy mean %x, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<f32>
  // CHECK: nn.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8xi64>, tensor<f32>)
  %8 = nn.cross_entropy_grad %x, %y, %lse5, %s : (tensor<8x4xf32>, tensor<8xi64>, tensor<f32>) -> tensor<8x4xf32>
  return
}

// Normalisation, with buffers that the model updates itself.
// CHECK-LABEL: func.func @batch_norm
// CHECK-SAME: nn.buffer = #nn.buffer<"bn.mean", init = 0.0>
// CHECK-SAME: nn.updates = "bn.mean"
func.func @batch_norm(%x: tensor<8x4x3xf32>, %g: tensor<4xf32>,
    %m: tensor<4xf32> {nn.buffer = #nn.buffer<"bn.mean", init = 0.0>},
    %v: tensor<4xf32> {nn.buffer = #nn.buffer<"bn.var", init = 1.0>})
    -> (tensor<8x4x3xf32>, tensor<4xf32> {nn.updates = "bn.mean"}, tensor<4xf32> {nn.updates = "bn.var"}) {
  // CHECK: nn.batch_norm %{{.*}} momentum = 1.000000e-01 eps = 1.000000e-05 : tensor<8x4x3xf32>, tensor<4xf32>
  %0:3 = nn.batch_norm %x, %g, %g, %m, %v momentum = 0.1 eps = 1.0e-5 : tensor<8x4x3xf32>, tensor<4xf32>
  return %0#0, %0#1, %0#2 : tensor<8x4x3xf32>, tensor<4xf32>, tensor<4xf32>
}

// Attention: heads are dimensions; the log-sum-exp's type follows from the result's.
// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x6x2x3x4xf32>, %k: tensor<2x6x2x4xf32>, %s: tensor<2x6xi64>, %bq: tensor<1x2x1x1x4xbf16>, %bk: tensor<1x5x1x4xbf16>) {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} causal scale = 5.000000e-01 : (tensor<2x6x2x3x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x2x3x4xf32>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<2x6x2x3x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x2x3x4xf32>
  // CHECK: nn.attention %{{.*}} segments = %{{.*}}, %{{.*}} causal window = 3 scale
  %1:2 = nn.attention %q, %k, %k segments = %s, %s causal window = 3 scale = 0.5 : (tensor<2x6x2x3x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6x2x3x4xf32>
  // CHECK: nn.attention_grad %{{.*}} segments = %{{.*}}, %{{.*}} window = 3 scale = 5.000000e-01 :
  %2:3 = nn.attention_grad %o, %q, %k, %k, %o, %lse segments = %s, %s window = 3 scale = 0.5 : (tensor<2x6x2x3x4xf32>, tensor<2x6x2x3x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x3x4xf32>, tensor<2x6x2x3xf32>, tensor<2x6xi64>, tensor<2x6xi64>) -> (tensor<2x6x2x3x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>)
  // CHECK: nn.attention %{{.*}} scale
  // CHECK: nn.add %{{.*}}: (tensor<1x2x1x1xf32>,
  %3:2 = nn.attention %bq, %bk, %bk scale = 1.0 : (tensor<1x2x1x1x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>) -> tensor<1x2x1x1x4xbf16>
  %4 = nn.add %3#1, %3#1 : (tensor<1x2x1x1xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x1x1xf32>
  return
}

// With positions a mask may look at more keys than there are queries. What is written of bf16 may be f32.
// CHECK-LABEL: func.func @attention_positions
func.func @attention_positions(%q: tensor<1x2x1x3x4xbf16>, %k: tensor<1x5x1x4xbf16>, %qs: tensor<1x2xi64>, %ks: tensor<1x5xi64>, %qp: tensor<2xi64>, %kp: tensor<5xi64>) {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} positions = %{{.*}}, %{{.*}} causal scale = 5.000000e-01 : (tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>, tensor<2xi64>, tensor<5xi64>) -> tensor<1x2x1x3x4xbf16>
  %o, %lse = nn.attention %q, %k, %k positions = %qp, %kp causal scale = 0.5 : (tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>, tensor<2xi64>, tensor<5xi64>) -> tensor<1x2x1x3x4xbf16>
  // CHECK: nn.attention %{{.*}} segments = %[[QS:.*]], %[[KS:.*]] positions = %[[QP:.*]], %[[KP:.*]] window = 2 scale = {{.*}} -> tensor<1x2x1x3x4xf32>
  %1:2 = nn.attention %q, %k, %k segments = %qs, %ks positions = %qp, %kp window = 2 scale = 0.5 : (tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x2xi64>, tensor<1x5xi64>, tensor<2xi64>, tensor<5xi64>) -> tensor<1x2x1x3x4xf32>
  // CHECK: nn.attention_grad %{{.*}} segments = %[[QS]], %[[KS]] positions = %[[QP]], %[[KP]] causal window = 2 scale = {{.*}} -> (tensor<1x2x1x3x4xf32>, tensor<1x5x1x4xf32>, tensor<1x5x1x4xf32>)
  %2:3 = nn.attention_grad %o, %q, %k, %k, %o, %lse segments = %qs, %ks positions = %qp, %kp causal window = 2 scale = 0.5 : (tensor<1x2x1x3x4xbf16>, tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x2x1x3x4xbf16>, tensor<1x2x1x3xf32>, tensor<1x2xi64>, tensor<1x5xi64>, tensor<2xi64>, tensor<5xi64>) -> (tensor<1x2x1x3x4xf32>, tensor<1x5x1x4xf32>, tensor<1x5x1x4xf32>)
  // CHECK: nn.attention_grad %{{.*}} scale = {{.*}} -> (tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>)
  %3:3 = nn.attention_grad %1#0, %q, %k, %k, %1#0, %1#1 scale = 0.5 : (tensor<1x2x1x3x4xf32>, tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x2x1x3x4xf32>, tensor<1x2x1x3xf32>) -> (tensor<1x2x1x3x4xbf16>, tensor<1x5x1x4xbf16>, tensor<1x5x1x4xbf16>)
  return
}

// Normalisation of rows, with the statistics that the gradient reads: f32 for bf16.
// CHECK-LABEL: func.func @row_norms
func.func @row_norms(%x: tensor<2x3x8xf32>, %p: tensor<8xf32>, %h: tensor<3x8xbf16>, %q: tensor<8xbf16>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) {
  // CHECK: %{{.*}}, %[[MEAN:.*]], %{{.*}} = nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps = 1.000000e-05 : tensor<2x3x8xf32>, tensor<8xf32>
  %y, %mean, %rstd = nn.layer_norm %x, %p, %p eps = 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} eps = 1.000000e-03 : tensor<3x8xbf16>, tensor<8xbf16>
  %z, %r = nn.rms_norm %h, %q eps = 1.0e-3 : tensor<3x8xbf16>, tensor<8xbf16>
  return %mean, %rstd, %r : tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>
}

// Rotary embedding, and what it is made of.
// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<2x8x3x6xf32>, %s: tensor<8xi64>, %bs: tensor<2x8xi32>, %pairs: tensor<2x8x3x2x3xbf16>) {
  // CHECK: nn.rope %{{.*}}, %{{.*}} base = 1.000000e+04 : tensor<2x8x3x6xf32>, tensor<8xi64>
  %0 = nn.rope %x, %s base = 10000.0 : tensor<2x8x3x6xf32>, tensor<8xi64>
  // CHECK: nn.rope %{{.*}}, %{{.*}} base = 5.000000e+05 {inverse} : tensor<2x8x3x6xf32>, tensor<2x8xi32>
  %1 = nn.rope %0, %bs base = 500000.0 {inverse} : tensor<2x8x3x6xf32>, tensor<2x8xi32>
  // CHECK: %[[COS:.*]], %[[SIN:.*]] = nn.rope_table %{{.*}} base = 1.000000e+04 : tensor<2x8xi32> -> tensor<2x8x3xf32>
  %cos, %sin = nn.rope_table %bs base = 10000.0 : tensor<2x8xi32> -> tensor<2x8x3xf32>
  // CHECK: nn.rotate %{{.*}}, %[[COS]], %[[SIN]] {inverse} : tensor<2x8x3x2x3xbf16>, tensor<2x8x3xf32>
  %2 = nn.rotate %pairs, %cos, %sin {inverse} : tensor<2x8x3x2x3xbf16>, tensor<2x8x3xf32>
  return
}

// Updates.
// CHECK-LABEL: func.func @updates
func.func @updates(%p: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i64>) {
  // CHECK: nn.sgd_update
  %0 = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.1 : f64} : tensor<4xf32>, tensor<f32>
  // CHECK: nn.momentum_update
  %1:2 = nn.momentum_update %p, %g, %m lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  // CHECK: nn.momentum_update {{.*}} nesterov
  %3:2 = nn.momentum_update %p, %g, %m lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64, nesterov} : tensor<4xf32>, tensor<f32>
  // CHECK: nn.adam_update {{.*}} decoupled
  %2:3 = nn.adam_update %p, %g, %m, %v lr = %lr step = %step {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64, decoupled} : tensor<4xf32>, tensor<f32>
  return
}

// The log-sum-exp of bf16 logits is f32.
// CHECK-LABEL: func.func @log_sum_exp
// CHECK: %{{.*}}, %[[LSE:.*]] = nn.cross_entropy sum %{{.*}} : (tensor<2x8x4xbf16>, tensor<2x8xi64>) -> tensor<bf16>
// CHECK: return %[[LSE]] : tensor<2x8xf32>
func.func @log_sum_exp(%x: tensor<2x8x4xbf16>, %y: tensor<2x8xi64>) -> tensor<2x8xf32> {
  %loss, %lse = nn.cross_entropy sum %x, %y : (tensor<2x8x4xbf16>, tensor<2x8xi64>) -> tensor<bf16>
  return %lse : tensor<2x8xf32>
}

// Dropout as users write it, with its seed, and on a shard.
// CHECK-LABEL: func.func @dropout
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 3 : tensor<8x4xf32>
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 3 seed = %{{.*}} step = %{{.*}} : tensor<8x4xf32>
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 3 seed = %{{.*}} step = %{{.*}} offset = %{{.*}} global = [16, 4] {nn.layer = "h"} : tensor<8x4xf32>
func.func @dropout(%x: tensor<8x4xf32>, %s: tensor<i64> {nn.seed}, %t: tensor<i64> {nn.step}, %o: tensor<i64>) {
  %0 = nn.dropout %x rate = 0.1 id = 3 : tensor<8x4xf32>
  %1 = nn.dropout %x rate = 0.1 id = 3 seed = %s step = %t : tensor<8x4xf32>
  %2 = nn.dropout %x rate = 0.1 id = 3 seed = %s step = %t offset = %o global = [16, 4] {nn.layer = "h"} : tensor<8x4xf32>
  return
}

// With the positions of its rows, of a part along them alone, and of a part of other dimensions as well.
// CHECK-LABEL: func.func @dropout_positions
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 3 positions = %{{.*}} dim = 0 : tensor<8x4xf32>, tensor<8xi64>
// CHECK: nn.dropout %{{.*}} step = %{{.*}} global = [16, 4] positions = %{{.*}} dim = 0 : tensor<8x4xf32>, tensor<8xi64>
// CHECK: nn.dropout %{{.*}} step = %{{.*}} offset = %{{.*}} global = [16, 4] positions = %{{.*}} dim = 1 {nn.layer = "h"} : tensor<8x4xf32>, tensor<4xi64>
func.func @dropout_positions(%x: tensor<8x4xf32>, %s: tensor<i64> {nn.seed}, %t: tensor<i64> {nn.step}, %o: tensor<i64>,
                             %p: tensor<8xi64>, %q: tensor<4xi64>) {
  %0 = nn.dropout %x rate = 0.1 id = 3 positions = %p dim = 0 : tensor<8x4xf32>, tensor<8xi64>
  %1 = nn.dropout %x rate = 0.1 id = 3 seed = %s step = %t global = [16, 4] positions = %p dim = 0 : tensor<8x4xf32>, tensor<8xi64>
  %2 = nn.dropout %x rate = 0.1 id = 3 seed = %s step = %t offset = %o global = [16, 4] positions = %q dim = 1 {nn.layer = "h"} : tensor<8x4xf32>, tensor<4xi64>
  return
}

// A sequence in zigzag order, back, and a shard of it, whose type differs.
// CHECK-LABEL: func.func @zigzag
// CHECK: nn.zigzag %{{.*}} dim = 1 ranks = 4 : tensor<2x12xi64>
// CHECK: nn.zigzag %{{.*}} dim = 1 ranks = 4 inverse : tensor<2x12xi64>
// CHECK: nn.zigzag %{{.*}} dim = 0 ranks = 9 inverse offset = %{{.*}} {nn.layer = "h"} : tensor<7x4xbf16> -> tensor<3x4xbf16>
// CHECK: nn.zigzag %{{.*}} dim = 0 ranks = 1 offset = %{{.*}} : tensor<7x4xbf16>{{$}}
func.func @zigzag(%x: tensor<2x12xi64>, %y: tensor<7x4xbf16>, %o: tensor<i64>) {
  %0 = nn.zigzag %x dim = 1 ranks = 4 : tensor<2x12xi64>
  %1 = nn.zigzag %0 dim = 1 ranks = 4 inverse : tensor<2x12xi64>
  %2 = nn.zigzag %y dim = 0 ranks = 9 inverse offset = %o {nn.layer = "h"} : tensor<7x4xbf16> -> tensor<3x4xbf16>
  %3 = nn.zigzag %y dim = 0 ranks = 1 offset = %o : tensor<7x4xbf16>
  return
}

// Attention over the keys of two parts, from the results for each.
// CHECK-LABEL: func.func @merge_attention
// CHECK: %{{.*}}, %[[L:.*]] = nn.merge_attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {nn.layer = "h"} : tensor<2x6x2x3x4xf32>
// CHECK: nn.add %[[L]], %{{.*}} : (tensor<2x6x2x3xf32>,
// CHECK: nn.merge_attention %{{.*}} : tensor<4xf64>
func.func @merge_attention(%o: tensor<2x6x2x3x4xf32>, %l: tensor<2x6x2x3xf32>, %p: tensor<4xf64>, %m: tensor<f64>) {
  %0, %lse = nn.merge_attention %o, %l, %o, %l {nn.layer = "h"} : tensor<2x6x2x3x4xf32>
  %1 = nn.add %lse, %l : (tensor<2x6x2x3xf32>, tensor<2x6x2x3xf32>) -> tensor<2x6x2x3xf32>
  %2:2 = nn.merge_attention %p, %m, %p, %m : tensor<4xf64>
  return
}
