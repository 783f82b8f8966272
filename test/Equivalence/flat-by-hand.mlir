// A parameter that a user lays flat over an axis which no strategy packs over: training and its evaluation agree on the bucket.
// RUN: shoalc %s --emit exec -o /dev/null --lr 0.1 --verify-plan 2>&1 | FileCheck %s
// CHECK: equals one device, --mode train
// CHECK: equals one device, --mode eval
dist.mesh @mesh <["data"=2, "tensor"=2]>
func.func @m(
    %x: tensor<6x3xf64> {nn.input = "x"}, %w: tensor<3x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %b: tensor<5xf64> {nn.param = #nn.param<"b", init = normal(0.0, 0.5)>, dist.flat = #dist.flat<{"tensor"}>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<6x3xf64>, tensor<3x5xf64>) -> tensor<6x5xf64>
  %1 = nn.add %0, %b : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %2 = nn.tanh %1 : tensor<6x5xf64>
  %3 = nn.mul %2, %2 : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %loss = nn.reduce mean %3 dims = [0, 1] : tensor<6x5xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
