// Hand-annotated chains of products on 2-D meshes: column- then row-parallel, shards of both axes in one
// dimension, odd sizes, axes of size 1, devices in another order.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --dist-number --dist-propagate --dist-verify-global -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --dist-partition --dist-verify-local \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=1" --dist-optimize-collectives \
// DEFINE:     --dist-expand-collectives --dist-verify-plan="reference=%t.global.mlir steps=1" -o %t.local.mlir

// REDEFINE: %{mesh} = "x"=2, "y"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=2, "y"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=3, "y"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=1, "y"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=4, "y"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=1, "y"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=2, "y"=4
// RUN: %{check}
// REDEFINE: %{mesh} = "x"=2, "y"=2], device_ids=[3, 0, 2, 1
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @chain(
    %a: tensor<8x6xf64> {nn.input = #nn.input<"a", unbatched>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<6x9xf64> {nn.input = #nn.input<"b", unbatched>, dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>},
    %c: tensor<9x5xf64> {nn.input = #nn.input<"c", unbatched>, dist.sharding = #dist.sharding<@mesh, [{"y"}, {}]>},
    %bias: tensor<5xf64> {nn.input = #nn.input<"bias", unbatched>},
    %d: tensor<5x7xf64> {nn.input = #nn.input<"d", unbatched>, dist.sharding = #dist.sharding<@mesh, [{}, {"y", "x"}]>})
    -> (tensor<8x7xf64> {nn.output = "softmax", dist.sharding = #dist.sharding<@mesh, [{}, {"x", "y"}]>},
        tensor<7xf64> {nn.output = "max", dist.sharding = #dist.sharding<@mesh, [{"y"}]>},
        tensor<56xf64> {nn.output = "flat"}) {
  %0 = nn.matmul %a, %b : (tensor<8x6xf64>, tensor<6x9xf64>) -> tensor<8x9xf64>
  %1 = nn.relu %0 : tensor<8x9xf64>
  %2 = nn.matmul %1, %c : (tensor<8x9xf64>, tensor<9x5xf64>) -> tensor<8x5xf64>
  %3 = nn.add %2, %bias : (tensor<8x5xf64>, tensor<5xf64>) -> tensor<8x5xf64>
  %4 = nn.matmul %3, %d : (tensor<8x5xf64>, tensor<5x7xf64>) -> tensor<8x7xf64>
  %5 = nn.softmax %4 dim = 1 : tensor<8x7xf64>
  %6 = nn.reduce max %4 dims = [0] : tensor<8x7xf64> -> tensor<7xf64>
  %7 = nn.reshape %4 : tensor<8x7xf64> -> tensor<56xf64>
  return %5, %6, %7 : tensor<8x7xf64>, tensor<7xf64>, tensor<56xf64>
}
