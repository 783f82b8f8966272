// Activations and their gradients keep their digits where they fall to 0, into the subnormal numbers. The gradient of a
// weight is the activation, that of what it is taken of the slope.
// RUN: shoalc %s -o %t.f32
// RUN: %python %support/activation_tails.py %t.f32 f32
// RUN: shoalc %s -o %t.f64 --dtype f64
// RUN: %python %support/activation_tails.py %t.f64 f64

func.func @tails(%x: tensor<1x1xf32> {nn.input = "x"},
                 %a: tensor<193xf32> {nn.param = #nn.param<"gelu", init = ones>},
                 %b: tensor<193xf32> {nn.param = #nn.param<"silu", init = ones>},
                 %c: tensor<193xf32> {nn.param = #nn.param<"sigmoid", init = ones>},
                 %d: tensor<193xf32> {nn.param = #nn.param<"erfc", init = ones>},
                 %wa: tensor<193xf32> {nn.param = #nn.param<"gelu.weight", init = ones>},
                 %wb: tensor<193xf32> {nn.param = #nn.param<"silu.weight", init = ones>},
                 %wc: tensor<193xf32> {nn.param = #nn.param<"sigmoid.weight", init = ones>},
                 %wd: tensor<193xf32> {nn.param = #nn.param<"erfc.weight", init = ones>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.gelu erf %a : tensor<193xf32>
  %1 = nn.silu %b : tensor<193xf32>
  %2 = nn.sigmoid %c : tensor<193xf32>
  %3 = nn.erfc %d : tensor<193xf32>
  %4 = nn.mul %0, %wa : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %5 = nn.mul %1, %wb : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %6 = nn.mul %2, %wc : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %7 = nn.mul %3, %wd : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %8 = nn.add %4, %5 : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %9 = nn.add %6, %7 : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %10 = nn.add %8, %9 : (tensor<193xf32>, tensor<193xf32>) -> tensor<193xf32>
  %11 = nn.mul %10, %x : (tensor<193xf32>, tensor<1x1xf32>) -> tensor<1x193xf32>
  %12 = nn.reduce sum %11 dims = [1] : tensor<1x193xf32> -> tensor<1xf32>
  %loss = nn.reduce mean %12 dims = [0] : tensor<1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
