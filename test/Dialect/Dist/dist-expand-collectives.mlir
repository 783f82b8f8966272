// Collectives on equal contiguous chunks of dimension 0, micro-batches one after another.
// RUN: shoal-opt %s --split-input-file --dist-expand-collectives --cse | FileCheck %s

// Padding at the end of the gathered dimension is cut off.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @gather_padded
// CHECK: %[[G:.*]] = dist.all_gather {"x"} dim = 0 %{{.*}} {reason = "r"} : tensor<3xf32> -> tensor<6xf32>
// CHECK-NEXT: nn.slice %[[G]] dim = 0 start = 0 : tensor<6xf32> -> tensor<5xf32>
func.func @gather_padded(%a: tensor<3xf32>) -> tensor<5xf32> {
  %0 = dist.all_gather {"x"} dim = 0 %a {reason = "r"} : tensor<3xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// A minor dimension becomes the first and goes back.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @gather_columns
// CHECK: %[[T:.*]] = nn.transpose %{{.*}} [1, 0] : tensor<4x3xf32> -> tensor<3x4xf32>
// CHECK-NEXT: %[[G:.*]] = dist.all_gather {"x"} dim = 0 %[[T]] {{.*}} : tensor<3x4xf32> -> tensor<6x4xf32>
// CHECK-NEXT: nn.transpose %[[G]] [1, 0] : tensor<6x4xf32> -> tensor<4x6xf32>
func.func @gather_columns(%a: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = dist.all_gather {"x"} dim = 1 %a {reason = "r"} : tensor<4x3xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Behind dimensions of size 1 a dimension is first already: no element moves.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @gather_behind_one
// CHECK-NOT: nn.transpose
// CHECK: nn.reshape %{{.*}} : tensor<1x3xf32> -> tensor<3x1xf32>
func.func @gather_behind_one(%a: tensor<1x3xf32>) -> tensor<1x6xf32> {
  %0 = dist.all_gather {"x"} dim = 1 %a {reason = "r"} : tensor<1x3xf32> -> tensor<1x6xf32>
  return %0 : tensor<1x6xf32>
}

// -----

// What is scattered is padded to equal parts.
dist.mesh @mesh <["x"=4]>
// CHECK-LABEL: @scatter_padded
// CHECK: %[[P:.*]] = nn.pad %{{.*}} dim = 0 low = 0 : tensor<7x2xf32> -> tensor<8x2xf32>
// CHECK-NEXT: dist.reduce_scatter {"x"} sum dim = 0 %[[P]] {reason = "r"} : tensor<8x2xf32> -> tensor<2x2xf32>
func.func @scatter_padded(%a: tensor<7x2xf32>) -> tensor<2x2xf32> {
  %0 = dist.reduce_scatter {"x"} sum dim = 0 %a {reason = "r"} : tensor<7x2xf32> -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// An exchange sends chunk k to device k, and puts what came from device k at place k.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @exchange
// CHECK: %[[P:.*]] = nn.pad %{{.*}} dim = 0 low = 0 : tensor<5x3xf32> -> tensor<6x3xf32>
// CHECK: %[[X:.*]] = dist.all_to_all {"x"} split = 0 concat = 1 %{{.*}} {reason = "r"} : tensor<2x9xf32> -> tensor<1x18xf32>
// CHECK-NEXT: %[[B:.*]] = nn.reshape %[[X]] : tensor<1x18xf32> -> tensor<2x3x3xf32>
// CHECK-NEXT: %[[T:.*]] = nn.transpose %[[B]] [1, 0, 2]
// CHECK-NEXT: nn.reshape %[[T]] : tensor<3x2x3xf32> -> tensor<3x6xf32>
func.func @exchange(%a: tensor<5x3xf32>) -> tensor<3x6xf32> {
  %0 = dist.all_to_all {"x"} split = 0 concat = 1 %a {reason = "r"} : tensor<5x3xf32> -> tensor<3x6xf32>
  return %0 : tensor<3x6xf32>
}

// -----

// A slice starts at the device's position.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @slice
// CHECK: %[[P:.*]] = nn.pad %{{.*}} dim = 1 low = 0 : tensor<2x7xf32> -> tensor<2x8xf32>
// CHECK-NEXT: %[[I:.*]] = dist.axis_index {"x"} * 4 : tensor<i64>
// CHECK-NEXT: nn.dynamic_slice %[[P]] dim = 1 start = %[[I]] : tensor<2x8xf32> -> tensor<2x4xf32>
func.func @slice(%a: tensor<2x7xf32>) -> tensor<2x4xf32> {
  %0 = dist.all_slice {"x"} dim = 1 %a {reason = "r"} : tensor<2x7xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// One device has everything already.
dist.mesh @mesh <["x"=1, "y"=2]>
// CHECK-LABEL: @alone
// CHECK-SAME: %[[A:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[A]]
func.func @alone(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce {"x"} sum %a {reason = "r"} : tensor<4xf32>
  %1 = dist.all_gather {"x"} dim = 0 %0 {reason = "r"} : tensor<4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What a collective of a micro-batch becomes is of that micro-batch.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @numbered
// CHECK: nn.slice %{{.*}} dim = 0 start = 2 {dist.microbatch = 1 : i64}
// CHECK-NEXT: nn.transpose {{.*}}dist.microbatch = 1 : i64
// CHECK-NEXT: dist.all_gather {"x"} dim = 0 {{.*}}dist.microbatch = 1 : i64
// CHECK-NEXT: nn.transpose {{.*}}dist.microbatch = 1 : i64
func.func @numbered(%a: tensor<4x3xf32>) -> tensor<2x6xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<2x3xf32>):
    %1 = dist.all_gather {"x"} dim = 1 %m {reason = "r"} : tensor<2x3xf32> -> tensor<2x6xf32>
    dist.yield %1 : tensor<2x6xf32>
  } : (tensor<4x3xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

// Micro-batches in order, their results summed.
// CHECK-LABEL: @accumulate
// CHECK: %[[A:.*]] = nn.slice %{{.*}} dim = 0 start = 0 {dist.microbatch = 0 : i64}
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[A]]
// CHECK-NEXT: %[[B:.*]] = nn.slice %{{.*}} dim = 0 start = 4
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[B]]
// CHECK-NEXT: nn.add %[[R]], %[[S]] {dist.microbatch = 1 : i64, dist.running_sum}
func.func @accumulate(%a: tensor<8x4xf32>) -> tensor<4xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A term that is reduced arrives while the next bucket is made: it is added in front of that one's reduction, the last at the end of
// its micro-batch.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @reduced_terms
// CHECK: nn.slice %{{.*}} start = 0
// CHECK: %[[A:.*]] = dist.reduce_scatter
// CHECK: %[[B:.*]] = dist.reduce_scatter
// CHECK: nn.slice %{{.*}} start = 4
// CHECK: %[[P:.*]] = dist.pack
// CHECK-NEXT: %[[C:.*]] = dist.reduce_scatter {"x"} sum dim = 0 %[[P]]
// CHECK-NEXT: %[[TWICE:.*]] = nn.add
// CHECK-NEXT: %[[Q:.*]] = dist.pack %[[TWICE]]
// CHECK-NEXT: nn.add %[[A]], %[[C]] {{.*}}dist.running_sum
// CHECK-NEXT: %[[D:.*]] = dist.reduce_scatter {"x"} sum dim = 0 %[[Q]]
// CHECK-NEXT: %[[N:.*]] = nn.neg
// CHECK-NEXT: nn.add %{{.*}}, %[[N]]
// CHECK-NEXT: nn.add %[[B]], %[[D]] {{.*}}dist.running_sum
func.func @reduced_terms(%a: tensor<8x4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<4x4xf32>) {
  %0:3 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    %2 = dist.pack %1[0:4] group 0 at 0 : (tensor<4xf32>) -> tensor<4xf32>
    %3 = dist.reduce_scatter {"x"} sum dim = 0 %2 {reason = "r"} : tensor<4xf32> -> tensor<2xf32>
    %4 = nn.add %1, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = dist.pack %4[0:4] group 1 at 0 : (tensor<4xf32>) -> tensor<4xf32>
    %6 = dist.reduce_scatter {"x"} sum dim = 0 %5 {reason = "r"} : tensor<4xf32> -> tensor<2xf32>
    %7 = nn.neg %m : tensor<4x4xf32>
    dist.yield %3, %6, %7 : tensor<2xf32>, tensor<2xf32>, tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<4x4xf32>)
  return %0#0, %0#1, %0#2 : tensor<2xf32>, tensor<2xf32>, tensor<4x4xf32>
}

// -----

// What is added to itself is one term: by its operands each doubling would double the terms.
// CHECK-LABEL: @doubled
// CHECK: %[[A:.*]] = nn.slice %{{.*}} start = 0
// CHECK-NEXT: %[[A2:.*]] = nn.add %[[A]], %[[A]]
// CHECK-NEXT: %[[A4:.*]] = nn.add %[[A2]], %[[A2]]
// CHECK-NEXT: %[[B:.*]] = nn.slice %{{.*}} start = 2
// CHECK-NEXT: %[[B2:.*]] = nn.add %[[B]], %[[B]]
// CHECK-NEXT: %[[B4:.*]] = nn.add %[[B2]], %[[B2]]
// CHECK-NEXT: nn.add %[[A4]], %[[B4]] {{.*}}dist.running_sum
func.func @doubled(%a: tensor<4x2xf32>) -> tensor<2x2xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<2x2xf32>):
    %1 = nn.add %m, %m : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = nn.add %1, %1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    dist.yield %2 : tensor<2x2xf32>
  } : (tensor<4x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Terms from outside are added in front of all micro-batches, where all of them are, in whatever order they come.
// CHECK-LABEL: @invariant
// CHECK: %[[V:.*]] = nn.tanh
// CHECK-NEXT: %[[U:.*]] = nn.neg %[[V]]
// CHECK-NEXT: %[[S:.*]] = nn.add %[[U]], %[[V]] {dist.microbatch = 0 : i64, dist.running_sum}
// CHECK-NEXT: nn.slice %{{.*}} start = 0
// CHECK-NEXT: %[[N:.*]] = nn.neg
// CHECK-NEXT: %[[S0:.*]] = nn.add %[[S]], %[[N]] {dist.microbatch = 0 : i64, dist.running_sum}
// CHECK-NEXT: %[[S1:.*]] = nn.add %[[S0]], %[[U]] {dist.microbatch = 1 : i64, dist.running_sum}
// CHECK-NEXT: %[[S2:.*]] = nn.add %[[S1]], %[[V]] {dist.microbatch = 1 : i64, dist.running_sum}
// CHECK: nn.slice %{{.*}} start = 1
// CHECK-NEXT: %[[N1:.*]] = nn.neg
// CHECK-NEXT: nn.add %[[S2]], %[[N1]]
func.func @invariant(%a: tensor<2x4xf32>, %b: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %v = nn.tanh %b : tensor<1x4xf32>
  %u = nn.neg %v : tensor<1x4xf32>
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<1x4xf32>):
    %1 = nn.neg %m : tensor<1x4xf32>
    %2 = nn.add %u, %v : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %3 = nn.add %2, %1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    dist.yield %3 : tensor<1x4xf32>
  } : (tensor<2x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// -----

// A bucket is put together behind all sums in it, also where two of them have their last terms from one op.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @terms_of_one_op
// CHECK: nn.slice %{{.*}} start = 4
// CHECK-NEXT: %[[Y:.*]], %[[R:.*]] = nn.rms_norm
// CHECK-NEXT: %[[SR:.*]] = nn.add %{{.*}}, %[[R]]
// CHECK-NEXT: %[[SY:.*]] = nn.add %{{.*}}, %[[Y]]
// CHECK-NEXT: %[[P:.*]] = dist.pack %[[SY]][0:4], %[[SR]][0:4]
// CHECK-NEXT: dist.all_reduce {"x"} sum %[[P]]
func.func @terms_of_one_op(%a: tensor<8x4xf32> {dist.global = #dist.global<0, tensor<16x4xf32>, <@mesh, [{"x"}, {}]>>}, %w: tensor<4xf32>)
    -> tensor<8xf32> {
  %0:2 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %y, %rstd = nn.rms_norm %m, %w eps = 1.0e-5 : tensor<4x4xf32>, tensor<4xf32>
    dist.yield %rstd, %y : tensor<4xf32>, tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>)
  %1 = dist.pack %0#1[0:4], %0#0[0:4] group 0 at 0 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = dist.all_reduce {"x"} sum %1 {reason = "r"} : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A bucket of a region in a region is one for each pair of micro-batches.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @nested_buckets
// CHECK: dist.pack {{.*}} group 0 at 0 {dist.microbatch = 0 : i64}
// CHECK: dist.pack {{.*}} group 2 at 0 {dist.microbatch = 1 : i64}
// CHECK: dist.pack {{.*}} group 1 at 0 {dist.microbatch = 2 : i64}
// CHECK: dist.pack {{.*}} group 3 at 0 {dist.microbatch = 3 : i64}
func.func @nested_buckets(%x: tensor<8x2xf32>) -> tensor<4xf32> {
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%a: tensor<4x2xf32>):
    %1 = dist.accumulate(%a) microbatches = 2 {
    ^bb0(%b: tensor<2x2xf32>):
      %2 = nn.reshape %b : tensor<2x2xf32> -> tensor<4xf32>
      %3 = dist.pack %2[0:4] group 0 at 0 : (tensor<4xf32>) -> tensor<4xf32>
      %4 = dist.all_reduce {"x"} sum %3 : tensor<4xf32>
      dist.yield %4 : tensor<4xf32>
    } : (tensor<4x2xf32>) -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
