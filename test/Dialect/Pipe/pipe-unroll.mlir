// RUN: shoal-opt %s -split-input-file --pipe-unroll | FileCheck %s -enable-var-scope

// A weight that three of four stages read. Its terms meet on their three ranks alone: from the last to the first, each
// adding its own, and the sum back, so that all have the same bits; rank 1 has no part in it. A message waits for no others.
dist.mesh @mesh <["pipe"=4]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks [
  "F0 SF0>1 RB0<1 B0", "RF0<0 F0 SF0>2 RB0<2 B0 SB0>0", "RF0<1 F0 SF0>3 RB0<3 B0 SB0>1", "RF0<2 F0 B0 SB0>2"
]
// CHECK-LABEL: func.func @shared
// CHECK: dist.send {"pipe"} %{{.*}} to %{{.*}} {dist.async, dist.at = array<i64: 3>{{.*}}reason = #dist.reason<"a sum over stages, of rank 3 and rank 2 of the pipeline"
// CHECK: %[[R2:.*]] = dist.recv {"pipe"} from %{{.*}} {dist.async, dist.at = array<i64: 2>
// CHECK: %[[S2:.*]] = nn.add %[[R2]], %{{.*}}
// CHECK: dist.send {"pipe"} %[[S2]] to %{{.*}} {dist.async, dist.at = array<i64: 2>
// CHECK: %[[R0:.*]] = dist.recv {"pipe"} from %{{.*}} {dist.async, dist.at = array<i64: 0>
// CHECK: %[[SUM:.*]] = nn.add %[[R0]], %{{.*}}
// CHECK: dist.send {"pipe"} %[[SUM]] to %{{.*}} {dist.async, dist.at = array<i64: 0>
// CHECK: %[[SUM2:.*]] = dist.recv {"pipe"} from %{{.*}} {dist.async, dist.at = array<i64: 2>
// CHECK: dist.send {"pipe"} %[[SUM2]] to %{{.*}} {dist.async, dist.at = array<i64: 2>
// CHECK: %[[SUM3:.*]] = dist.recv {"pipe"} from %{{.*}} {dist.async, dist.at = array<i64: 3>
// CHECK: %[[GRAD:.*]] = dist.select [0, 0, 1, 2] %[[SUM]], %[[SUM2]], %[[SUM3]] {{.*}}: tensor<4xf32>
// CHECK-NOT: dist.all_reduce
// CHECK: return %[[GRAD]]
func.func private @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f1(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @b(%d: tensor<4xf32>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.mul %d, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.mul %d, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
func.func @shared(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<4xf32> {nn.grad = "w"}) {
  %g:3 = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f1(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = pipe.call forward stage 2 @f(%1, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = pipe.call forward stage 3 @f(%2, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %b3:2 = pipe.call backward stage 3 @b(%3, %2, %w) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %b2:2 = pipe.call backward stage 2 @b(%b3#0, %1, %w) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %b1 = pipe.call backward stage 1 @f1(%b2#0) : (tensor<4xf32>) -> tensor<4xf32>
    %b0:2 = pipe.call backward stage 0 @b(%b1, %part, %w) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    dist.yield %b0#1, %b2#1, %b3#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %0 = nn.add %g#0, %g#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.add %0, %g#2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What a rank adds up it adds where the term is made, and what is reduced over the data axis starts behind the last term,
// before the rank has ended its last backward pass. What waits for another stage, here the sum of both losses, follows
// all that does not: the update of the first weight needs the loss's sum, that of the second does not.
dist.mesh @mesh <["pipe"=2, "data"=2]>
pipe.schedule @schedule placement = loop microbatches = 2 chunks = 1 ranks [
  "F0 SF0>1 F1 SF1>1 RB0<1 B0 RB1<1 B1", "RF0<0 F0 B0 SB0>0 RF1<0 F1 B1 SB1>0"
]
// CHECK-LABEL: func.func @early
// CHECK: %[[T0:.*]] = nn.exp {{.*}} {{{.*}}dist.microbatch = 0 : i64
// CHECK: %[[T1:.*]] = nn.exp {{.*}} {{{.*}}dist.microbatch = 1 : i64
// CHECK-NEXT: %[[G1:.*]] = nn.add %[[T0]], %[[T1]] {dist.microbatch = 1 : i64, dist.running_sum
// CHECK-NEXT: %[[P1:.*]] = dist.pack %[[G1]]
// CHECK-NEXT: %[[R1:.*]] = dist.all_reduce {"data"} sum %[[P1]] {dist.at = array<i64: 2, 3>{{.*}}}
// CHECK: dist.send {"pipe"} {{.*}} dist.microbatch = 1 : i64{{.*}}reason = #dist.reason<"stage 0 reads
// CHECK: %[[LOSS:.*]] = dist.all_reduce {"pipe"} sum
// CHECK: %[[U1:.*]] = nn.sub %{{.*}}, %[[R1]]
// CHECK: %[[U0:.*]] = nn.sub %{{.*}}, %[[LOSS]]
// CHECK: return %[[U0]], %[[U1]]
func.func private @e.f0(%x: tensor<1x1x4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0 = nn.reshape %x : tensor<1x1x4xf32> -> tensor<4xf32>
  %1 = nn.mul %0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = nn.reduce sum %1 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1, %2 : tensor<4xf32>, tensor<f32>
}
func.func private @e.f1(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}
func.func private @e.b1(%d: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.exp %d : tensor<4xf32>
  %1 = nn.mul %d, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4xf32>
}
func.func private @e.b0(%d: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %d : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @early(%x: tensor<2x1x4xf32> {nn.batch_rows = 2 : i64, nn.input = "x"}, %w0: tensor<4xf32> {nn.param = #nn.param<"w0", init = zeros>},
    %w1: tensor<4xf32> {nn.param = #nn.param<"w1", init = zeros>}) -> (tensor<4xf32> {nn.updates = "w0"}, tensor<4xf32> {nn.updates = "w1"}) {
  %r:4 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%part: tensor<1x1x4xf32>):
    %f0:2 = pipe.call forward stage 0 @e.f0(%part, %w0) : (tensor<1x1x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
    %f1:2 = pipe.call forward stage 1 @e.f1(%f0#0, %w1) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
    %b1:2 = pipe.call backward stage 1 @e.b1(%f1#0, %w1) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %b0 = pipe.call backward stage 0 @e.b0(%b1#0) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %f0#1, %f1#1, %b0, %b1#1 : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
  } : (tensor<2x1x4xf32>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  %loss = nn.add %r#0, %r#1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %p0 = dist.pack %r#2[0:4] group 0 at 0 : (tensor<4xf32>) -> tensor<4xf32>
  %g0 = dist.all_reduce {"data"} sum %p0 : tensor<4xf32>
  %u0 = nn.sub %g0, %loss : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %p1 = dist.pack %r#3[0:4] group 1 at 0 : (tensor<4xf32>) -> tensor<4xf32>
  %g1 = dist.all_reduce {"data"} sum %p1 : tensor<4xf32>
  %u1 = nn.sub %w1, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %u0, %u1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Stages that hand on what the step has anyway, with nothing in front of the region: it is everywhere, and no sum.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
// CHECK-LABEL: func.func @nothing_before(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[X]], %[[X]] :
// CHECK-NEXT: return %[[SUM]], %[[X]]
func.func @nothing_before(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @same(%part) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @same(%part) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = nn.add %r#0, %r#1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %sum, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A gradient that is reduced in each micro-batch: what the last rank starts to reduce at the end of a backward pass it adds
// behind its next forward pass, and the last of it at the end of the step.
dist.mesh @mesh <["pipe"=2, "data"=2]>
pipe.schedule @schedule placement = loop microbatches = 3 chunks = 1 ranks [
  "F0 SF0>1 F1 SF1>1 F2 SF2>1 RB0<1 B0 RB1<1 B1 RB2<1 B2",
  "RF0<0 F0 B0 SB0>0 RF1<0 F1 B1 SB1>0 RF2<0 F2 B2 SB2>0"
]
// CHECK-LABEL: func.func @reduced
// CHECK: %[[R0:.*]] = dist.reduce_scatter {{.*}} {dist.at = array<i64: 2, 3>, dist.microbatch = 0
// CHECK: nn.exp {{.*}} dist.microbatch = 1
// CHECK: %[[R1:.*]] = dist.reduce_scatter {{.*}} {dist.at = array<i64: 2, 3>, dist.microbatch = 1
// CHECK-NOT: nn.add
// CHECK: nn.exp {{.*}} dist.microbatch = 2
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[R0]], %[[R1]] {dist.microbatch = 2 : i64, dist.running_sum, exec.scope = "F2@1"}
// CHECK: %[[R2:.*]] = dist.reduce_scatter {{.*}} {dist.at = array<i64: 2, 3>, dist.microbatch = 2
// CHECK: dist.send
// CHECK: %[[GRAD:.*]] = nn.add %[[SUM]], %[[R2]] {{{.*}}exec.scope = "B2@1"}
// CHECK: return %[[GRAD]]
func.func private @r.f0(%x: tensor<1x1x4xf32>) -> tensor<1x4xf32> {
  %0 = nn.reshape %x : tensor<1x1x4xf32> -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
func.func private @r.f1(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = nn.exp %x : tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
func.func private @r.b1(%x: tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<2xf32>) {
  %0 = nn.neg %x : tensor<1x4xf32>
  %1 = nn.reshape %0 : tensor<1x4xf32> -> tensor<4xf32>
  %2 = dist.reduce_scatter {"data"} sum dim = 0 %1 : tensor<4xf32> -> tensor<2xf32>
  return %0, %2 : tensor<1x4xf32>, tensor<2xf32>
}
func.func private @r.b0(%d: tensor<1x4xf32>) -> tensor<f32> {
  %0 = nn.relu %d : tensor<1x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<1x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @reduced(%x: tensor<3x1x4xf32> {nn.batch_rows = 3 : i64, nn.input = "x"}) -> (tensor<2xf32>, tensor<f32>) {
  %g:2 = dist.accumulate(%x) microbatches = 3 {
  ^bb0(%part: tensor<1x1x4xf32>):
    %0 = pipe.call forward stage 0 @r.f0(%part) : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
    %1 = pipe.call forward stage 1 @r.f1(%0) : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %2:2 = pipe.call backward stage 1 @r.b1(%1) : (tensor<1x4xf32>) -> (tensor<1x4xf32>, tensor<2xf32>)
    %3 = pipe.call backward stage 0 @r.b0(%2#0) : (tensor<1x4xf32>) -> tensor<f32>
    dist.yield %2#1, %3 : tensor<2xf32>, tensor<f32>
  } : (tensor<3x1x4xf32>) -> (tensor<2xf32>, tensor<f32>)
  return %g#0, %g#1 : tensor<2xf32>, tensor<f32>
}
