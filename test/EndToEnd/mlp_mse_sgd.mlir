// A perceptron under SGD does what PyTorch computes in float64, on 1 to 4 ranks.
// RUN: %python %support/golden.py %s %S/golden/mlp_mse_sgd.json --work %t

func.func @mlp(
    %x:  tensor<32x16xf64> {nn.input = "x"},
    %y:  tensor<32x10xf64> {nn.input = "y"},
    %w1: tensor<16x512xf64> {nn.param = #nn.param<"w1", init = zeros>},
    %b1: tensor<512xf64> {nn.param = #nn.param<"b1", init = zeros>},
    %w2: tensor<512x10xf64> {nn.param = #nn.param<"w2", init = zeros>},
    %b2: tensor<10xf64> {nn.param = #nn.param<"b2", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<32x16xf64>, tensor<16x512xf64>) -> tensor<32x512xf64>
  %1 = nn.add %0, %b1 : (tensor<32x512xf64>, tensor<512xf64>) -> tensor<32x512xf64>
  %2 = nn.relu %1 : tensor<32x512xf64>
  %3 = nn.matmul %2, %w2 : (tensor<32x512xf64>, tensor<512x10xf64>) -> tensor<32x10xf64>
  %4 = nn.add %3, %b2 : (tensor<32x10xf64>, tensor<10xf64>) -> tensor<32x10xf64>
  %loss = nn.mse_loss mean %4, %y : (tensor<32x10xf64>, tensor<32x10xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
