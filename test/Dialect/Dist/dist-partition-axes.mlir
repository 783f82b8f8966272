// Partition runs over some axes; what the others shard stays annotated for the next run, and tags in the end
// name the axes of both.
// RUN: shoal-opt %s --dist-partition=axes=tensor | FileCheck %s --check-prefix=FIRST
// RUN: shoal-opt %s --dist-partition=axes=tensor --dist-partition=axes=data | FileCheck %s --check-prefix=BOTH

dist.mesh @mesh <["data"=2, "tensor"=2]>

// FIRST-LABEL: @block
// FIRST-SAME: %[[X:.*]]: tensor<8x4xf32> {{.*}}dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>
// FIRST-SAME: %[[W:.*]]: tensor<4x3xf32> {{.*}}dist.sharding = #dist.sharding<@mesh, [{}, {}]>
// FIRST: %[[H:.*]] = nn.matmul %[[X]], %[[W]] {dist.globals = [#dist.global<0, tensor<8x6xf32>, <@mesh, [{}, {"tensor"}]>>], dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]}
// FIRST: %[[P:.*]] = nn.matmul %[[H]], %{{.*}} : (tensor<8x3xf32>, tensor<3x4xf32>) -> tensor<8x4xf32>
// FIRST: dist.all_reduce {"tensor"} {{.*}}sum %[[P]] {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>], reason

// BOTH-LABEL: @block
// BOTH-SAME: %[[X:.*]]: tensor<4x4xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{"data"}, {}]>>}
// BOTH-SAME: %[[W:.*]]: tensor<4x3xf32> {dist.global = #dist.global<1, tensor<4x6xf32>, <@mesh, [{}, {"tensor"}]>>}
// BOTH: nn.matmul %[[X]], %[[W]] {dist.globals = [#dist.global<0, tensor<8x6xf32>, <@mesh, [{"data"}, {"tensor"}]>>]}
// BOTH: dist.all_reduce {"tensor"} {{.*}} : tensor<4x4xf32>
// BOTH: dist.all_reduce {"data"} {{.*}} : tensor<f32>
// BOTH-NOT: dist.sharding
func.func @block(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %w: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                 %v: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>}) {
  %0 = nn.matmul %x, %w {dist.id = 0 : i64, dist.shardings = [#dist.sharding<@mesh, [{"data"}, {"tensor"}]>]} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = nn.matmul %0, %v {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}], unreduced=sum{"tensor"}>]} : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %2 = nn.relu %1 {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : tensor<8x4xf32>
  %3 = nn.reduce sum %2 dims = [0, 1] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<f32>
  return %3 : tensor<f32>
}
