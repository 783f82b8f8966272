// Kernels give what IEEE arithmetic gives at its edges, wherever an element lies in a vector.
// RUN: shoalc %s -o %t --mode infer
// RUN: %python %support/special_values.py %t

func.func @special(%a: tensor<37xf32> {nn.input = "a"}) -> (tensor<37xf32> {nn.output = "rsqrt"}, tensor<37xf32> {nn.output = "quotient"}) {
  %one = nn.constant dense<1.0> : tensor<f32>
  %r = nn.rsqrt %a : tensor<37xf32>
  %s = nn.sqrt %a : tensor<37xf32>
  %q = nn.div %one, %s : (tensor<f32>, tensor<37xf32>) -> tensor<37xf32>
  return %r, %q : tensor<37xf32>, tensor<37xf32>
}
