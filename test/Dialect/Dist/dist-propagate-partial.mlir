// Where partial values are reduced: the cheapest cut between the ops that make them and those that read them whole.
// RUN: shoal-opt %s -split-input-file --dist-propagate --dist-verify-global --dist-partition --dist-optimize-collectives=overlap=false | FileCheck %s

// Two readers go on with it, as the backward pass of a norm does with the cotangent: one reduction in front of both, none for the
// gradient of the scale.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @fan_out
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} sum %[[P]]
// CHECK-NEXT: nn.mul %[[R]], %arg2
// CHECK-NEXT: nn.mul %[[R]], %arg3
// CHECK-NEXT: nn.reduce sum
// CHECK-NEXT: return
func.func @fan_out(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                   %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                   %g: tensor<8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %0 = nn.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %g : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = nn.mul %0, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.reduce sum %2 dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<8xf32>
}

// -----

// A sum over rows, as the gradient of a bias, takes what another op needs whole: though it would have less to reduce.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @bias
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} sum %[[P]]
// CHECK-NEXT: nn.reduce sum %[[R]]
// CHECK-NEXT: nn.relu %[[R]]
// CHECK-NEXT: return
func.func @bias(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8xf32>, tensor<4x8xf32>) {
  %0 = nn.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %2 = nn.relu %0 : tensor<4x8xf32>
  return %1, %2 : tensor<8xf32>, tensor<4x8xf32>
}

// -----

// The sum of two is reduced, and what a reader makes of it that is smaller.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @sum
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[Q:.*]] = nn.matmul
// CHECK-NEXT: %[[S:.*]] = nn.add %[[P]], %[[Q]]
// CHECK-NEXT: %[[T:.*]] = nn.reduce sum %[[S]]
// CHECK-NEXT: dist.all_reduce {"x"} sum %[[T]] {{.*}} : tensor<8xf32>
// CHECK-NEXT: return
func.func @sum(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
               %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = nn.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = nn.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %2 = nn.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = nn.reduce sum %2 dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// What grows is reduced while it is small.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @grows
// CHECK: %[[P:.*]] = nn.reduce sum
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} sum %[[P]] {{.*}} : tensor<8xf32>
// CHECK-NEXT: nn.mul %[[R]], %arg1
// CHECK-NEXT: return
func.func @grows(%a: tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}, %y: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %0 = nn.reduce sum %a dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %1 = nn.mul %0, %y : (tensor<8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %1 : tensor<5x8xf32>
}

// -----

// Behind products, as of weight gradients, though the cotangent is smaller than both: it would be waited for.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @products
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[A:.*]] = nn.matmul %[[P]], %arg2
// CHECK-NEXT: %[[B:.*]] = nn.matmul %[[P]], %arg3
// CHECK-NEXT: dist.all_reduce {"x"} sum %[[A]] {{.*}} : tensor<2x16xf32>
// CHECK-NEXT: dist.all_reduce {"x"} sum %[[B]] {{.*}} : tensor<2x16xf32>
// CHECK-NEXT: return
func.func @products(%a: tensor<2x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                    %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                    %u: tensor<8x16xf32>, %v: tensor<8x16xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>) {
  %0 = nn.matmul %a, %b : (tensor<2x6xf32>, tensor<6x8xf32>) -> tensor<2x8xf32>
  %1 = nn.matmul %0, %u : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  %2 = nn.matmul %0, %v : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  return %1, %2 : tensor<2x16xf32>, tensor<2x16xf32>
}

// -----

// A micro-batch region runs many times: sums leave it as they are, though what leaves is as large as the sum of both.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @micro_batches
// CHECK: dist.accumulate
// CHECK: %[[P:.*]] = nn.reduce sum
// CHECK-NEXT: %[[S:.*]] = nn.mul %[[P]]
// CHECK-NEXT: %[[T:.*]] = nn.mul %[[P]]
// CHECK-NEXT: dist.yield %[[S]], %[[T]]
// CHECK-COUNT-2: dist.all_reduce {"x"} sum
// CHECK-NEXT: return
func.func @micro_batches(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}, %u: tensor<4xf32>, %v: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    %2 = nn.mul %1, %u : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = nn.mul %1, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dist.yield %2, %3 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<8x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A shard is scattered for half of what an all-reduce sends: behind the two that read it so, when one of them is small.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @scattered
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[A:.*]] = nn.mul %[[P]]
// CHECK-NEXT: dist.reduce_scatter {"x"} sum dim = 0 %[[A]]
// CHECK-NEXT: %[[B:.*]] = nn.reduce sum %[[P]]
// CHECK-NEXT: dist.all_reduce {"x"} sum %[[B]] {{.*}} : tensor<8xf32>
// CHECK-NEXT: return
func.func @scattered(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                     %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}, %g: tensor<8xf32>)
    -> (tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}, tensor<8xf32>) {
  %0 = nn.matmul %a, %b : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %g : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = dist.reshard %1 <@mesh, [{"x"}, {}]> : tensor<4x8xf32>
  %3 = nn.reduce sum %0 dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<8xf32>
}
