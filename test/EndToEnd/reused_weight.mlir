// A weight that is used twice gets the sum of both gradients, and a batch of one row on up to 4 ranks
// leaves the others with padding only.
// RUN: %python %support/golden.py %s %S/golden/reused_weight.json --work %t
// In a pipeline each use has a stage, and backward is cut into its parts for the input and for the weight.
// RUN: %python %support/golden.py %s %S/golden/reused_weight.json --work %t --plan "pipe=2 --pipeline-schedule zb-h1" \
// RUN:   --plan "pipe=3 --pipeline-schedule zb-h2" --plan "data=2,pipe=2 --pipeline-schedule zb-h1"

func.func @twice(
    %x: tensor<1x2xf64> {nn.input = "x"},
    %w: tensor<2x2xf64> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %1 = nn.matmul %0, %w : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<1x2xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
