// RUN: split-file %s %t

// What passes make on the way to the annotated step is in the stage of what they make it for. What is in none is made of
// arguments and constants alone, or of all gradients (their norm), or is the region of the micro-batches.
// DEFINE: %{last} = nn-optimize{optimizer=adamw clip-grad-norm=1 lr-schedule=constant},canonicalize,cse,dist-microbatch{count=2}
// DEFINE: %{f32} = nn-explicit-counts,nn-differentiate,nn-recompute{mode=full},%{last}
// DEFINE: %{bf16} = nn-convert-dtype{to=f32},nn-explicit-counts,nn-mixed-precision,nn-differentiate,nn-gradient-dtype,nn-recompute{mode=full},%{last}
// DEFINE: %{unstaged} = grep '= ' | grep -v 'func.func' | grep -v 'nn.constant' | grep -v 'pipe.stage' | FileCheck %t/step.mlir
// RUN: shoal-opt %t/step.mlir --pass-pipeline="builtin.module(%{f32})" | FileCheck %t/step.mlir --check-prefix=STEP
// RUN: shoal-opt %t/step.mlir --pass-pipeline="builtin.module(%{f32})" | %{unstaged} --check-prefix=REST
// RUN: shoal-opt %t/step.mlir --pass-pipeline="builtin.module(%{bf16})" | %{unstaged} --check-prefixes=COPIES,REST

// RUN: shoal-opt %t/sums.mlir --nn-differentiate | FileCheck %t/sums.mlir
// RUN: shoal-opt %t/bias.mlir --nn-differentiate --nn-optimize=optimizer=sgd | FileCheck %t/bias.mlir
// RUN: shoal-opt %t/apart.mlir --canonicalize --cse | FileCheck %t/apart.mlir
// RUN: shoal-opt %t/collectives.mlir --dist-optimize-collectives | FileCheck %t/collectives.mlir

//--- step.mlir

// COPIES: nn.cast %{{.*}} {exec.class = "param"}
// COPIES-NEXT: nn.cast %{{.*}} {exec.class = "param"}
// REST: nn.iota
// REST-NEXT: dist.accumulate(
// REST-NEXT: nn.reshape %{{.*}} : tensor<1xi64> -> tensor<i64>
// REST-NEXT: nn.mul %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// REST-NEXT: nn.reshape %{{.*}} : tensor<1x2xi64> -> tensor<2xi64>
// REST-NEXT: nn.add %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// REST-NEXT: nn.iota
// REST-NEXT: dist.accumulate(
// REST-NEXT: nn.reshape %{{.*}} : tensor<1xi64> -> tensor<i64>
// REST-NEXT: nn.mul %{{.*}} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// REST-NEXT: nn.reshape %{{.*}} : tensor<1x2x8xf32> -> tensor<2x8xf32>
// REST-NEXT: nn.reshape %{{.*}} : tensor<1x2xi64> -> tensor<2xi64>
// REST-NEXT: nn.add %{{.*}} : (tensor<f32>, tensor<f32>) -> tensor<f32>
// REST-NEXT: nn.sqrt
// REST-NEXT: nn.add
// REST-NEXT: nn.div
// REST-NEXT: nn.minimum
// REST-NOT: =

// The loss's count and mask are of the last stage. A weight that both stages read is updated in the first; so are its
// squares for the norm, and there both parts of its gradient meet. Copies are of the stage whose backward pass they serve.
// STEP-LABEL: func.func @step
// STEP: nn.mask {{.*}} {pipe.stage = 1 : i64}
// STEP: nn.maximum {{.*}} {pipe.stage = 1 : i64}
// STEP: nn.mask {{.*}} {pipe.stage = 1 : i64}
// STEP: nn.cross_entropy_grad {{.*}} {pipe.stage = 1 : i64}
// STEP: nn.tanh {{.*}} {nn.layer = "h.1", nn.recompute, pipe.stage = 1 : i64}
// STEP: nn.add {{.*}} {nn.layer = "h.1", pipe.stage = 1 : i64}
// STEP: nn.tanh {{.*}} {nn.layer = "h.0", nn.recompute, pipe.stage = 0 : i64}
// STEP: nn.add {{.*}} {nn.layer = "h.0", pipe.stage = 0 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>)
// STEP: nn.reduce sum {{.*}} {nn.layer = "h.0", pipe.stage = 0 : i64} : tensor<8x8xf32> -> tensor<f32>
// STEP: nn.reduce sum {{.*}} {nn.layer = "h.1", pipe.stage = 1 : i64} : tensor<8x8xf32> -> tensor<f32>
// STEP: nn.adam_update {{.*}} pipe.stage = 0 : i64
// STEP: nn.adam_update {{.*}} pipe.stage = 1 : i64
func.func @step(%x: tensor<4x8xf32> {nn.input = "x"}, %y: tensor<4xi64> {nn.input = "y"},
    %w: tensor<8x8xf32> {nn.param = #nn.param<"w", init = zeros>},
    %v: tensor<8x8xf32> {nn.param = #nn.param<"v", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %h = nn.matmul %x, %w {nn.layer = "h.0", pipe.stage = 0 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a = nn.tanh %h {nn.layer = "h.0", pipe.stage = 0 : i64} : tensor<4x8xf32>
  %b = nn.tanh %a {nn.layer = "h.0", pipe.stage = 0 : i64} : tensor<4x8xf32>
  %z = nn.matmul %b, %v {nn.layer = "h.1", pipe.stage = 1 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %t = nn.tanh %z {nn.layer = "h.1", pipe.stage = 1 : i64} : tensor<4x8xf32>
  %u = nn.tanh %t {nn.layer = "h.1", pipe.stage = 1 : i64} : tensor<4x8xf32>
  %s = nn.add %u, %b {nn.layer = "h.1", pipe.stage = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %logits = nn.matmul %s, %w {pipe.stage = 1 : i64, transpose_b} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %loss, %lse = nn.cross_entropy mean %logits, %y {pipe.stage = 1 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

//--- sums.mlir

// A sum of cotangents from one stage is of it. One of several is where the value is made, an argument where it is read
// first: of %0 that is 0, though 1 and 2 read it; of %w 0, before 0 adds to it.
// CHECK-LABEL: func.func @sums
// CHECK-SAME: (%[[X:[^:]*]]: tensor<4xf32> {nn.input = "x"}, %[[W:[^:]*]]: tensor<4xf32>
// CHECK: %[[V0:.*]] = nn.mul %[[X]], %[[W]] {pipe.stage = 0 : i64}
// CHECK: nn.add {{.*}} {pipe.stage = 3 : i64}
// CHECK: %[[DW:.*]] = nn.add {{.*}} {pipe.stage = 0 : i64}
// CHECK: %[[D0:.*]] = nn.add {{.*}} {pipe.stage = 0 : i64}
// CHECK: %[[LAST:.*]] = nn.mul %[[D0]], %[[X]] {pipe.stage = 0 : i64}
// CHECK: nn.add %[[DW]], %[[LAST]] {pipe.stage = 0 : i64}
// CHECK-NOT: nn.add
func.func @sums(%x: tensor<4xf32> {nn.input = "x"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.mul %x, %w {pipe.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.tanh %0 {pipe.stage = 1 : i64} : tensor<4xf32>
  %2 = nn.exp %0 {pipe.stage = 2 : i64} : tensor<4xf32>
  %3 = nn.mul %1, %w {pipe.stage = 2 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = nn.mul %2, %w {pipe.stage = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = nn.mul %2, %4 {pipe.stage = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = nn.mul %3, %5 {pipe.stage = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = nn.reduce sum %6 dims = [0] {pipe.stage = 3 : i64} : tensor<4xf32> -> tensor<f32>
  return %7 : tensor<f32>
}

//--- bias.mlir

// A parameter whose gradient is made in a later stage is updated where it is read.
// CHECK-LABEL: func.func @bias
// CHECK: nn.sgd_update {{.*}} {pipe.stage = 0 : i64
func.func @bias(%x: tensor<4xf32> {nn.input = "x"}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.add %x, %b {pipe.stage = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.mul %0, %0 {pipe.stage = 1 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.reduce sum %1 dims = [0] {pipe.stage = 1 : i64} : tensor<4xf32> -> tensor<f32>
  return %2 : tensor<f32>
}

//--- apart.mlir

// Equal ops of two stages are two.
// CHECK-LABEL: func.func @apart
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[A:.*]] = nn.relu %[[X]] {pipe.stage = 0 : i64}
// CHECK-NEXT: %[[B:.*]] = nn.relu %[[X]] {pipe.stage = 1 : i64}
// CHECK-NEXT: return %[[A]], %[[B]], %[[B]]
func.func @apart(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.relu %x {pipe.stage = 0 : i64} : tensor<4xf32>
  %1 = nn.relu %x {pipe.stage = 1 : i64} : tensor<4xf32>
  %2 = nn.relu %x {pipe.stage = 1 : i64} : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

//--- collectives.mlir

// Collectives of two layers become one, those of two stages do not.
dist.mesh @mesh <["data"=2]>
// CHECK-LABEL: func.func @collectives
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[A:.*]] = dist.all_reduce {"data"} sum %[[X]] {nn.layer = "h.0", pipe.stage = 0 : i64}
// CHECK-NEXT: %[[B:.*]] = dist.all_reduce {"data"} sum %[[X]] {nn.layer = "h.1", pipe.stage = 1 : i64}
// CHECK-NEXT: return %[[A]], %[[B]], %[[B]]
func.func @collectives(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce {"data"} sum %x {nn.layer = "h.0", pipe.stage = 0 : i64} : tensor<4xf32>
  %1 = dist.all_reduce {"data"} sum %x {nn.layer = "h.1", pipe.stage = 1 : i64} : tensor<4xf32>
  %2 = dist.all_reduce {"data"} sum %x {nn.layer = "h.2", pipe.stage = 1 : i64} : tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
