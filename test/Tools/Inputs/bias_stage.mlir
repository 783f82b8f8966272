// A stage that adds a bias, whose gradient needs nothing of the forward pass, before one that multiplies.
func.func @sum(%x: tensor<6x5xf64> {nn.input = "x"}, %y: tensor<6xi64> {nn.input = "y"},
    %w0: tensor<5xf64> {nn.param = #nn.param<"w0", init = normal(0.0, 0.5)>},
    %w1: tensor<5x5xf64> {nn.param = #nn.param<"w1", init = normal(0.0, 0.5)>}) -> (tensor<f64> {nn.loss}) {
  %0 = nn.add %x, %w0 {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %1 = nn.matmul %0, %w1 {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %loss, %lse = nn.cross_entropy mean %1, %y {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss : tensor<f64>
}
