// Sums over two stages behind the micro-batches that are no norm: a loss that a buffer keeps, and the gradient of a
// scalar that both stages read.
func.func @sums(
    %x: tensor<8x4xf32> {nn.input = "x"},
    %w: tensor<4x4xf32> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %v: tensor<4x4xf32> {nn.param = #nn.param<"v", init = normal(0.0, 0.5)>},
    %scale: tensor<f32> {nn.param = #nn.param<"scale", init = ones>},
    %kept: tensor<f32> {nn.buffer = #nn.buffer<"kept", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<f32> {nn.updates = "kept"}) {
  %0 = nn.matmul %x, %w {pipe.stage = 0 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.mul %0, %scale : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %first = nn.reduce mean %1 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  %2 = nn.matmul %1, %v {pipe.stage = 1 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.mul %2, %scale : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %second = nn.reduce mean %3 dims = [0, 1] : tensor<8x4xf32> -> tensor<f32>
  %loss = nn.add %first, %second : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %new = nn.add %kept, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss, %new : tensor<f32>, tensor<f32>
}
