// Dropout drops the elements that one device drops, under every plan: rows, features and positions of the sequence
// sharded, sizes that do not divide, a value that is still a partial sum; forward and backward, in every step.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=sgd lr=0.1" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=3" -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "tensor"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "tensor"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=4, "data"=2
// RUN: %{check}

// Each shard counts in the whole tensor; in the backward program one lies otherwise than in the forward one.
// RUN: FileCheck %s --input-file=%t.local.mlir
// CHECK: nn.dropout %{{.*}} id = 0 seed = %{{.*}} offset = %{{.*}} global = [5, 6, 7] {{.*}} : tensor<3x2x7xf64>
// CHECK: nn.dropout %{{.*}} id = 1 seed = %{{.*}} offset = %{{.*}} global = [5, 6, 11] {{.*}} : tensor<3x6x3xf64>
// CHECK: nn.dropout %{{.*}} id = 1 seed = %{{.*}} offset = %{{.*}} global = [5, 6, 11] {{.*}} : tensor<3x2x11xf64>
dist.mesh @mesh <[MESH]>
func.func @drops(
    %x:  tensor<5x6x7xf64> {nn.input = "x"},
    %w1: tensor<7x11xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %w2: tensor<11x7xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.dropout %x rate = 0.25 id = 0 : tensor<5x6x7xf64>
  %1 = nn.matmul %0, %w1 : (tensor<5x6x7xf64>, tensor<7x11xf64>) -> tensor<5x6x11xf64>
  %2 = nn.dropout %1 rate = 0.5 id = 1 {dist.shardings = [#dist.sharding<@mesh, [{?}, {}, {"tensor"}]>]} : tensor<5x6x11xf64>
  %3 = nn.matmul %2, %w2 : (tensor<5x6x11xf64>, tensor<11x7xf64>) -> tensor<5x6x7xf64>
  %4 = nn.dropout %3 rate = 0.1 id = 2 {dist.shardings = [#dist.sharding<@mesh, [{?}, {"tensor"}, {?}]>]} : tensor<5x6x7xf64>
  %5 = nn.dropout %4 rate = 0.3 id = 3 : tensor<5x6x7xf64>
  %6 = nn.mul %5, %5 : (tensor<5x6x7xf64>, tensor<5x6x7xf64>) -> tensor<5x6x7xf64>
  %loss = nn.reduce mean %6 dims = [0, 1, 2] : tensor<5x6x7xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
