// Compiled gradients of activations far from zero are 0 or 1, also where the square of an element overflows.
// RUN: shoalc %s -o %t.f32
// RUN: %python %support/activations_far_from_zero.py %t.f32 f32
// RUN: shoalc %s -o %t.f64 --dtype f64
// RUN: %python %support/activations_far_from_zero.py %t.f64 f64

func.func @far(%x: tensor<1x1xf32> {nn.input = "x"},
               %a: tensor<37xf32> {nn.param = #nn.param<"gelu_tanh", init = ones>},
               %b: tensor<37xf32> {nn.param = #nn.param<"gelu_erf", init = ones>},
               %c: tensor<37xf32> {nn.param = #nn.param<"silu", init = ones>},
               %d: tensor<37xf32> {nn.param = #nn.param<"sigmoid", init = ones>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.gelu tanh %a : tensor<37xf32>
  %1 = nn.gelu erf %b : tensor<37xf32>
  %2 = nn.silu %c : tensor<37xf32>
  %3 = nn.sigmoid %d : tensor<37xf32>
  %4 = nn.add %0, %1 : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %5 = nn.add %2, %3 : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %6 = nn.add %4, %5 : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32>
  %7 = nn.mul %6, %x : (tensor<37xf32>, tensor<1x1xf32>) -> tensor<1x37xf32>
  %8 = nn.reduce sum %7 dims = [1] : tensor<1x37xf32> -> tensor<1xf32>
  %loss = nn.reduce mean %8 dims = [0] : tensor<1xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
