// Sizes that no number of ranks divides (30 rows, 7, 13, 5) change nothing, on 1 to 4 ranks.
// RUN: %python %support/golden.py %s %S/golden/mlp_mse_odd_sizes.json --work %t

func.func @mlp(
    %x:  tensor<30x7xf64> {nn.input = "x"},
    %y:  tensor<30x5xf64> {nn.input = "y"},
    %w1: tensor<7x13xf64> {nn.param = #nn.param<"w1", init = zeros>},
    %b1: tensor<13xf64> {nn.param = #nn.param<"b1", init = zeros>},
    %w2: tensor<13x5xf64> {nn.param = #nn.param<"w2", init = zeros>},
    %b2: tensor<5xf64> {nn.param = #nn.param<"b2", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<30x7xf64>, tensor<7x13xf64>) -> tensor<30x13xf64>
  %1 = nn.add %0, %b1 : (tensor<30x13xf64>, tensor<13xf64>) -> tensor<30x13xf64>
  %2 = nn.relu %1 : tensor<30x13xf64>
  %3 = nn.matmul %2, %w2 : (tensor<30x13xf64>, tensor<13x5xf64>) -> tensor<30x5xf64>
  %4 = nn.add %3, %b2 : (tensor<30x5xf64>, tensor<5xf64>) -> tensor<30x5xf64>
  %loss = nn.mse_loss mean %4, %y : (tensor<30x5xf64>, tensor<30x5xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
