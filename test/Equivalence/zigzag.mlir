// A sequence in zigzag order, and back, is the same under every plan and on every number of devices, whether ranks
// divide it (12 over 4) or not (12 over 5, 7 over 2), also of other ranks than there are devices, and of more devices than
// rows: whole inputs of which each device takes its rows, rows that stay where a norm needs no others, and gradients of
// what was reordered.
// DEFINE: %{mesh} =
// DEFINE: %{ranks} =
// DEFINE: %{rows} = 12
// DEFINE: %{check} = sed -e 's/MESH/%{mesh}/' -e 's/RANKS/%{ranks}/' -e 's/x12x/x%{rows}x/g' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=context optimizer=sgd lr=0.1" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=context" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=3" -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "context"=1
// REDEFINE: %{ranks} = 4
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "context"=4
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "context"=5
// REDEFINE: %{ranks} = 5
// RUN: %{check}
// REDEFINE: %{mesh} = "context"=3, "data"=2
// RUN: %{check}
// REDEFINE: %{rows} = 7
// REDEFINE: %{mesh} = "data"=1, "context"=9
// REDEFINE: %{ranks} = 3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "context"=2
// REDEFINE: %{ranks} = 2
// RUN: %{check}
// RUN: FileCheck %s --input-file=%t.local.mlir
// CHECK: nn.zigzag %{{.*}} dim = 1 ranks = 2 offset = %{{.*}} : tensor<2x7x6xf64> -> tensor<2x4x6xf64>
dist.mesh @mesh <[MESH]>
func.func @ordered(
    %x: tensor<5x12x6xf64> {nn.input = "x"},
    %p: tensor<1x12x6xf64> {nn.param = #nn.param<"p", init = uniform(-1.0, 1.0)>},
    %s: tensor<6xf64> {nn.param = #nn.param<"s", init = uniform(0.5, 1.5)>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.zigzag %x dim = 1 ranks = RANKS {dist.shardings = [#dist.sharding<@mesh, [{?}, {"context"}, {}]>]} : tensor<5x12x6xf64>
  %1 = nn.zigzag %p dim = 1 ranks = RANKS {dist.shardings = [#dist.sharding<@mesh, [{?}, {"context"}, {}]>]} : tensor<1x12x6xf64>
  %2 = nn.add %0, %1 : (tensor<5x12x6xf64>, tensor<1x12x6xf64>) -> tensor<5x12x6xf64>
  %3, %rstd = nn.rms_norm %2, %s eps = 1.0e-5 : tensor<5x12x6xf64>, tensor<6xf64>
  %4 = nn.zigzag %3 dim = 1 ranks = RANKS inverse {dist.shardings = [#dist.sharding<@mesh, [{?}, {}, {}]>]} : tensor<5x12x6xf64>
  %5 = nn.mul %4, %x : (tensor<5x12x6xf64>, tensor<5x12x6xf64>) -> tensor<5x12x6xf64>
  %loss = nn.reduce mean %5 dims = [0, 1, 2] : tensor<5x12x6xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
