// RUN: shoal-opt %s --nn-differentiate --allow-unregistered-dialect -split-input-file -verify-diagnostics -o /dev/null

// expected-error @+1 {{every parameter must reach the loss, these have no gradient: "b", "c"}}
func.func @unused(%a: tensor<f32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<f32> {nn.param = #nn.param<"b", init = zeros>},
    %c: tensor<f32> {nn.param = #nn.param<"c", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.tanh %b : tensor<f32>
  return %a : tensor<f32>
}

// -----

// A comparison passes no gradient on.
// expected-error @+1 {{every parameter must reach the loss, these have no gradient: "a"}}
func.func @compare(%a: tensor<f32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.compare gt %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = nn.cast %0 : tensor<i1> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{differentiation needs a result with 'nn.loss', got none}}
func.func @loss(%a: tensor<f32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.output = "a"}) {
  return %a : tensor<f32>
}

// -----

// expected-error @+1 {{is already differentiated: result 1 is the gradient of "a"}}
func.func @again(%a: tensor<f32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}, tensor<f32> {nn.grad = "a"}) {
  return %a, %a : tensor<f32>, tensor<f32>
}

// -----

func.func @update(%a: tensor<f32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'nn.sgd_update' op has no gradient}}
  %0 = nn.sgd_update %a, %a lr = %a {weight_decay = 0.0 : f64} : tensor<f32>, tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @targets(%x: tensor<4xf32> {nn.input = "x"}, %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{has no gradient with respect to its targets}}
  %0, %lse0 = nn.cross_entropy sum %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @unknown(%a: tensor<f32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{has no gradient and lies between a parameter and the loss; it must implement DifferentiableOpInterface}}
  %0 = "test.op"(%a) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The log-sum-exp is for the gradient, and has none itself.
func.func @lse(%q: tensor<1x2x1x1x4xf32> {nn.param = #nn.param<"q", init = zeros>}, %k: tensor<1x2x1x4xf32>) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{has no gradient through its log-sum-exp}}
  %o, %lse = nn.attention %q, %k, %k scale = 1.0 : (tensor<1x2x1x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>) -> tensor<1x2x1x1x4xf32>
  %1 = nn.reduce sum %lse dims = [0, 1, 2, 3] : tensor<1x2x1x1xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @through_lse(%a: tensor<4x3xf32> {nn.param = #nn.param<"a", init = zeros>}, %y: tensor<4xi64>) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{has no gradient through its log-sum-exp}}
  %loss, %lse = nn.cross_entropy sum %a, %y : (tensor<4x3xf32>, tensor<4xi64>) -> tensor<f32>
  %0 = nn.reduce sum %lse dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @mean(%a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'nn.reduce' op is a mean, and what it divides by is the count of the whole: run nn-explicit-counts on the model; by hand write the sum and divide it}}
  %0 = nn.reduce mean %a dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
