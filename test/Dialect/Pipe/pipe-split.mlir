// RUN: shoal-opt %s --pipe-split -split-input-file | FileCheck %s
// RUN: shoal-opt %s --pipe-split --pipe-unroll -split-input-file | FileCheck %s --check-prefix=UNROLL

// A weight that both stages read: each has a sum of its own, and they meet behind the region. What stage 1 sends back is
// the cotangent of what it has received, what each keeps is an argument of its backward pass.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 2 chunks = 1 ranks [
  "F0 SF0>1 F1 SF1>1 RB0<1 B0 RB1<1 B1",
  "RF0<0 F0 RF1<0 F1 B0 SB0>0 B1 SB1>0"
]
// CHECK-LABEL: func private @step.stage0.forward
// CHECK-SAME: (%{{.*}}: tensor<1x4x6xf32>, %{{.*}}: tensor<6x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
// CHECK-LABEL: func private @step.stage1.forward
// CHECK-LABEL: func private @step.stage1.backward
// A constant outside is made where it is read.
// CHECK: nn.constant
// CHECK-LABEL: func private @step.stage0.backward
// CHECK-LABEL: func.func @step(
// CHECK: %[[R:.*]]:3 = dist.accumulate
// CHECK: %[[F0:.*]]:2 = pipe.call forward stage 0 @step.stage0.forward(%{{.*}}, %[[W:arg1]])
// CHECK: %[[F1:.*]]:3 = pipe.call forward stage 1 @step.stage1.forward(%[[F0]]#0, %[[W]])
// CHECK: %[[B1:.*]]:2 = pipe.call backward stage 1 @step.stage1.backward(%[[F1]]#0, %[[W]], %[[F1]]#1)
// CHECK: %[[B0:.*]] = pipe.call backward stage 0 @step.stage0.backward(%{{.*}})
// CHECK: dist.yield %[[B0]], %[[B1]]#1, %[[F1]]#2
// CHECK: nn.add %[[R]]#0, %[[R]]#1
// CHECK-NOT: nn.add

// Rank 0 sends both micro-batches before it receives, rank 1 the other way round; the weight's gradient is one sum over
// the ranks, to which each gives its own.
// UNROLL-NOT: pipe.
// UNROLL-LABEL: func.func @step(
// UNROLL: nn.matmul %{{.*}} {dist.at = array<i64: 0>, dist.microbatch = 0 : i64, exec.scope = "F0@0", pipe.stage = 0 : i64}
// UNROLL: dist.send {"pipe"} %{{.*}} to %{{.*}} {dist.async, dist.at = array<i64: 0>, dist.microbatch = 0 : i64, exec.scope = "SF0@0", reason = #dist.reason<"stage 1 reads what stage 0 makes of micro-batch 0"
// UNROLL: nn.matmul %{{.*}} {dist.at = array<i64: 0>, dist.microbatch = 1 : i64, exec.scope = "F1@0", pipe.stage = 0 : i64}
// UNROLL: dist.send {"pipe"}
// UNROLL: dist.recv {"pipe"} from %{{.*}} {dist.async, dist.at = array<i64: 0>, dist.microbatch = 0 : i64
// UNROLL: nn.add %{{.*}} dist.running_sum, exec.scope = "B1@0"}
// UNROLL: dist.recv {"pipe"} from %{{.*}} {dist.async, dist.at = array<i64: 1>, dist.microbatch = 0 : i64
// UNROLL: dist.send {"pipe"} %{{.*}} to %{{.*}} {dist.async, dist.at = array<i64: 1>, dist.microbatch = 0 : i64, exec.scope = "SB0@1", reason = #dist.reason<"stage 0 reads what stage 1 makes of micro-batch 0"
// UNROLL: %[[PART:.*]] = dist.select [0, 1] %{{.*}}, %{{.*}} : tensor<6x6xf32>
// UNROLL: %[[GRAD:.*]] = dist.all_reduce {"pipe"} sum %[[PART]]
// UNROLL: return %{{.*}}, %[[GRAD]]
func.func @step(%x: tensor<2x4x6xf32> {nn.batch_rows = 8 : i64, nn.input = "x"},
    %w: tensor<6x6xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<6x6xf32> {nn.grad = "w"}) {
  %two = nn.constant dense<2.0> : tensor<f32>
  %r:2 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%part: tensor<1x4x6xf32>):
    %rows = nn.reshape %part : tensor<1x4x6xf32> -> tensor<4x6xf32>
    %h = nn.matmul %rows, %w {pipe.stage = 0 : i64} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %o = nn.matmul %h, %w {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %d = nn.mul %o, %two {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %square = nn.mul %o, %o {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %loss = nn.reduce sum %square dims = [0, 1] {pipe.stage = 1 : i64} : tensor<4x6xf32> -> tensor<f32>
    %dh = nn.matmul %d, %w {pipe.stage = 1 : i64, transpose_b} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %g1 = nn.matmul %h, %d {pipe.stage = 1 : i64, transpose_a} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    %g0 = nn.matmul %rows, %dh {pipe.stage = 0 : i64, transpose_a} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    %g = nn.add %g0, %g1 : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    dist.yield %g, %loss : tensor<6x6xf32>, tensor<f32>
  } : (tensor<2x4x6xf32>) -> (tensor<6x6xf32>, tensor<f32>)
  return %r#1, %r#0 : tensor<f32>, tensor<6x6xf32>
}

// -----

// A metric that the loss does not need, and the new value of a buffer, are of the forward pass, as the loss is; the norm
// of gradients is behind the region.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks [
  "F0 SF0>1 RB0<1 B0",
  "RF0<0 F0 B0 SB0>0"
]
// CHECK-LABEL: func private @told.stage0.forward
// CHECK: nn.matmul
// CHECK: nn.reduce sum
// CHECK-LABEL: func private @told.stage1.forward
// CHECK: nn.matmul
// CHECK-DAG: nn.exp
// CHECK-DAG: nn.reduce max
// CHECK-LABEL: func private @told.stage1.backward
// CHECK-NOT: nn.exp
// CHECK-NOT: nn.reduce
// CHECK-LABEL: func.func @told(
func.func @told(%x: tensor<4x6xf32> {nn.input = "x"}, %w: tensor<6x6xf32> {nn.param = #nn.param<"w", init = zeros>},
    %v: tensor<6x6xf32> {nn.param = #nn.param<"v", init = zeros>}, %b: tensor<6xf32> {nn.buffer = #nn.buffer<"b", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<f32> {nn.metric = "widest"}, tensor<6xf32> {nn.updates = "b"},
        tensor<6x6xf32> {nn.grad = "w"}, tensor<6x6xf32> {nn.grad = "v"}, tensor<f32> {nn.metric = "grad_norm"}) {
  %r:5 = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%rows: tensor<4x6xf32>):
    %h = nn.matmul %rows, %w {pipe.stage = 0 : i64} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %mean = nn.reduce sum %h dims = [0] {pipe.stage = 0 : i64} : tensor<4x6xf32> -> tensor<6xf32>
    %o = nn.matmul %h, %v {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %loss = nn.reduce sum %o dims = [0, 1] {pipe.stage = 1 : i64} : tensor<4x6xf32> -> tensor<f32>
    %e = nn.exp %o {pipe.stage = 1 : i64} : tensor<4x6xf32>
    %widest = nn.reduce max %e dims = [0, 1] {pipe.stage = 1 : i64} : tensor<4x6xf32> -> tensor<f32>
    %dh = nn.matmul %o, %v {pipe.stage = 1 : i64, transpose_b} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %gv = nn.matmul %h, %o {pipe.stage = 1 : i64, transpose_a} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    %gw = nn.matmul %rows, %dh {pipe.stage = 0 : i64, transpose_a} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    dist.yield %loss, %widest, %mean, %gw, %gv : tensor<f32>, tensor<f32>, tensor<6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
  } : (tensor<4x6xf32>) -> (tensor<f32>, tensor<f32>, tensor<6xf32>, tensor<6x6xf32>, tensor<6x6xf32>)
  %norm = nn.reduce sum %r#4 dims = [0, 1] : tensor<6x6xf32> -> tensor<f32>
  return %r#0, %r#1, %r#2, %r#3, %r#4, %norm : tensor<f32>, tensor<f32>, tensor<6xf32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<f32>
}

// -----

// A gradient that no stage says and that cotangents of two stages meet in, once by way of each other, is made where the
// last of them is: in the first of the stages.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks [
  "F0 SF0>1 RB0<1 B0",
  "RF0<0 F0 B0 SB0>0"
]
// CHECK-LABEL: func private @met.stage1.backward
// CHECK-NOT: nn.exp
// CHECK-LABEL: func private @met.stage0.backward
// CHECK: %[[W:.*]] = nn.matmul
// CHECK: %[[OWN:.*]] = nn.neg %[[W]]
// CHECK: %[[BOTH:.*]] = nn.mul %[[OWN]], %{{arg[0-9]+}}
// CHECK: %[[GRAD:.*]] = nn.exp %[[BOTH]]
// CHECK: return %[[GRAD]]
// CHECK-LABEL: func.func @met(
func.func @met(%x: tensor<6x6xf32> {nn.input = "x"}, %w: tensor<6x6xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<6x6xf32> {nn.grad = "w"}) {
  %r:2 = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%rows: tensor<6x6xf32>):
    %h = nn.matmul %rows, %w {pipe.stage = 0 : i64} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %o = nn.matmul %h, %w {pipe.stage = 1 : i64} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %loss = nn.reduce sum %o dims = [0, 1] {pipe.stage = 1 : i64} : tensor<6x6xf32> -> tensor<f32>
    %d = nn.matmul %o, %w {pipe.stage = 1 : i64, transpose_b} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %dw = nn.matmul %rows, %d {pipe.stage = 0 : i64, transpose_a} : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %own = nn.neg %dw : tensor<6x6xf32>
    %both = nn.mul %own, %d : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    %g = nn.exp %both : tensor<6x6xf32>
    dist.yield %loss, %g : tensor<f32>, tensor<6x6xf32>
  } : (tensor<6x6xf32>) -> (tensor<f32>, tensor<6x6xf32>)
  return %r#0, %r#1 : tensor<f32>, tensor<6x6xf32>
}

// -----

// The cast of a sum of two stages' terms is of the forward pass, as the sum is, also where it is cut: inference has no
// other pass.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
// CHECK-LABEL: func private @cast.stage0.forward
// CHECK: nn.cast
// CHECK-LABEL: func private @cast.stage1.forward
// CHECK: nn.cast
// CHECK-NOT: backward
// CHECK-LABEL: func.func @cast(
// CHECK-NOT: backward
func.func @cast(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<4xf64> {nn.output = "y"}) {
  %r = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = nn.tanh %part {pipe.stage = 0 : i64} : tensor<4xf32>
    %1 = nn.exp %0 {pipe.stage = 1 : i64} : tensor<4xf32>
    %2 = nn.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = nn.cast %2 : tensor<4xf32> -> tensor<4xf64>
    dist.yield %3 : tensor<4xf64>
  } : (tensor<4xf32>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
