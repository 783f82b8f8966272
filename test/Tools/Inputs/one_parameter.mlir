func.func @linear(
    %x: tensor<28x24xf32> {nn.input = "x"},
    %y: tensor<28x10xf32> {nn.input = "y"},
    %w: tensor<24x10xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<28x24xf32>, tensor<24x10xf32>) -> tensor<28x10xf32>
  %loss = nn.mse_loss mean %0, %y : (tensor<28x10xf32>, tensor<28x10xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
