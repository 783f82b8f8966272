// RUN: shoal-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(nn-recompute{mode=selective})"

// Without layers there is nothing between which values could be kept.
// expected-error @+1 {{recomputes layer by layer, and none of its ops has 'nn.layer': name the layers, or leave --recompute out}}
func.func @no_layers(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x2xf64> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f64> {nn.loss}, tensor<4x2xf64> {nn.grad = "w"}) {
  %0 = nn.matmul %x, %w : (tensor<8x4xf64>, tensor<4x2xf64>) -> tensor<8x2xf64>
  %loss = nn.reduce sum %0 dims = [0, 1] : tensor<8x2xf64> -> tensor<f64>
  %g = nn.constant dense<1.0> : tensor<4x2xf64>
  return %loss, %g : tensor<f64>, tensor<4x2xf64>
}

// -----

// expected-error @+1 {{has no result with 'nn.grad', so no backward pass that could compute values again: run nn-differentiate first}}
func.func @forward(%x: tensor<8x4xf64> {nn.input = "x"}) -> (tensor<f64> {nn.loss}) {
  %loss = nn.reduce sum %x dims = [0, 1] {nn.layer = "a"} : tensor<8x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// A layer of products alone keeps all that backward reads.
// expected-remark @+1 {{nothing to recompute: backward reads nothing of a layer but what enters it and the results of its products}}
func.func @products(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x2xf64> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f64> {nn.loss}, tensor<4x2xf64> {nn.grad = "w"}) {
  %0 = nn.matmul %x, %w {nn.layer = "a"} : (tensor<8x4xf64>, tensor<4x2xf64>) -> tensor<8x2xf64>
  %loss = nn.reduce sum %0 dims = [0, 1] : tensor<8x2xf64> -> tensor<f64>
  %g = nn.matmul %x, %0 {nn.layer = "a", transpose_a} : (tensor<8x4xf64>, tensor<8x2xf64>) -> tensor<4x2xf64>
  return %loss, %g : tensor<f64>, tensor<4x2xf64>
}

// -----

func.func @not_a_unit(%x: tensor<8xf64>) -> tensor<8xf64> {
  // expected-error @+1 {{'nn.recompute' is a unit attribute of ops in a model, got: true}}
  %0 = nn.exp %x {nn.recompute = true} : tensor<8xf64>
  return %0 : tensor<8xf64>
}
