// cross_entropy over sharded classes is the one of one device: 5, 7 and 11 classes over 2, 3, 4 and 8 ranks, ignored
// targets, probabilities, a short last batch (every second step), rows sharded beside them.
// DEFINE: %{mesh} =
// DEFINE: %{classes} = 11
// DEFINE: %{check} = sed 's/MESH/%{mesh}/; s/CLASSES/%{classes}/g' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=sgd lr=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=4" -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "tensor"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=4, "data"=2
// RUN: %{check}
// REDEFINE: %{classes} = 5
// REDEFINE: %{mesh} = "data"=3, "tensor"=2
// RUN: %{check}
// Some ranks hold padding only.
// REDEFINE: %{mesh} = "data"=1, "tensor"=8
// RUN: %{check}
// REDEFINE: %{classes} = 7
// REDEFINE: %{mesh} = "data"=2, "tensor"=4
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @head(
    %x: tensor<6x3x4xf64> {nn.input = "x"},
    %y: tensor<6x3xi64> {nn.input = "y"},
    %p: tensor<6x3xCLASSESxf64> {nn.input = "p"},
    %w: tensor<4xCLASSESxf64> {nn.param = #nn.param<"w", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %v: tensor<4xCLASSESxf64> {nn.param = #nn.param<"v", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<6x3x4xf64>, tensor<4xCLASSESxf64>) -> tensor<6x3xCLASSESxf64>
  %hard, %lse0 = nn.cross_entropy mean %0, %y : (tensor<6x3xCLASSESxf64>, tensor<6x3xi64>) -> tensor<f64>
  %1 = nn.matmul %x, %v : (tensor<6x3x4xf64>, tensor<4xCLASSESxf64>) -> tensor<6x3xCLASSESxf64>
  %soft, %lse1 = nn.cross_entropy mean %1, %p : (tensor<6x3xCLASSESxf64>, tensor<6x3xCLASSESxf64>) -> tensor<f64>
  %loss = nn.add %hard, %soft : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss : tensor<f64>
}
