// A tied table of 7 rows over 2, 3, 4 and 8 devices, some without a row of their own, with and without data parallelism; and a
// second one whose columns are sharded. Every shard holds rows that are named, padding is never read, and nothing of a table moves.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=adamw weight-decay=0.1 clip-grad-norm=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir && FileCheck %s --input-file=%t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=4, "data"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=8
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "tensor"=1
// RUN: %{check}

// The numbers are masked where rows of the batch are padding, the table and its cotangents never are.
// CHECK-LABEL: func.func @tied
// CHECK-NOT: dist.all_gather
// CHECK-NOT: nn.mask {{.*}} : tensor<{{.*}}x6xf64>
// CHECK: nn.embedding

dist.mesh @mesh <[MESH]>
func.func @tied(
    %ids: tensor<5x4xi64> {nn.input = "ids"},
    %y:   tensor<5x4x6xf64> {nn.input = "y"},
    %t:   tensor<7x6xf64> {nn.param = #nn.param<"t", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %u:   tensor<7x11xf64> {nn.param = #nn.param<"u", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %v:   tensor<11x6xf64> {nn.param = #nn.param<"v", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.embedding %t, %ids : (tensor<7x6xf64>, tensor<5x4xi64>) -> tensor<5x4x6xf64>
  %1 = nn.embedding %u, %ids : (tensor<7x11xf64>, tensor<5x4xi64>) -> tensor<5x4x11xf64>
  %2 = nn.tensordot %1, %v axes = 1 : (tensor<5x4x11xf64>, tensor<11x6xf64>) -> tensor<5x4x6xf64>
  %3 = nn.add %0, %2 : (tensor<5x4x6xf64>, tensor<5x4x6xf64>) -> tensor<5x4x6xf64>
  %4 = nn.tanh %3 : tensor<5x4x6xf64>
  // The table again, as the head, and back.
  %5 = nn.tensordot %4, %t axes = 1 {transpose_b} : (tensor<5x4x6xf64>, tensor<7x6xf64>) -> tensor<5x4x7xf64>
  %6 = nn.tanh %5 : tensor<5x4x7xf64>
  %7 = nn.tensordot %6, %t axes = 1 : (tensor<5x4x7xf64>, tensor<7x6xf64>) -> tensor<5x4x6xf64>
  %loss = nn.mse_loss mean %7, %y : (tensor<5x4x6xf64>, tensor<5x4x6xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
