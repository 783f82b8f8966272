// Three rows on up to eight ranks: some hold padding only. The mean is over the real rows, a batch norm written
// out sees the statistics of the whole batch, and a weight used twice gets the sum of both gradients.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global=data-axes=data -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local=data-axes=data --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=8
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @twice(
    %x: tensor<3x4xf64> {nn.input = "x"},
    %y: tensor<3x4xf64> {nn.input = "y"},
    %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<3x4xf64>, tensor<4x4xf64>) -> tensor<3x4xf64>
  %mean = nn.reduce mean %0 dims = [0] : tensor<3x4xf64> -> tensor<4xf64>
  %centred = nn.sub %0, %mean : (tensor<3x4xf64>, tensor<4xf64>) -> tensor<3x4xf64>
  %squares = nn.mul %centred, %centred : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %variance = nn.reduce mean %squares dims = [0] : tensor<3x4xf64> -> tensor<4xf64>
  %eps = nn.constant dense<1.0e-5> : tensor<f64>
  %safe = nn.add %variance, %eps : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  %scale = nn.rsqrt %safe : tensor<4xf64>
  %normal = nn.mul %centred, %scale : (tensor<3x4xf64>, tensor<4xf64>) -> tensor<3x4xf64>
  %1 = nn.matmul %normal, %w : (tensor<3x4xf64>, tensor<4x4xf64>) -> tensor<3x4xf64>
  %loss = nn.mse_loss mean %1, %y : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
