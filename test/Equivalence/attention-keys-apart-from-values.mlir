// Annotations that place keys and values unlike each other make no ring: what would pass by is gathered, as a remark says.
// RUN: shoalc %s --optimizer sgd --verify-plan 2>&1 | FileCheck %s
// CHECK: remark: 'nn.attention_grad' reads operand #2 as #dist.sharding<@mesh, {{\[}}{}, {}, {"z"}, {}]>: it will be resharded
// CHECK: the plan equals one device, --mode train
// CHECK: the plan equals one device, --mode eval
dist.mesh @mesh <["x"=3, "y"=1, "z"=2]>
func.func @m(%q: tensor<3x12x3x1x2xf64> {nn.param = #nn.param<"q", init = uniform(-1.0, 1.0)>},
  %k: tensor<3x5x3x2xf64> {nn.param = #nn.param<"k", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [{}, {"x", "y"}, {"z"}, {}]>},
  %v: tensor<3x5x3x2xf64> {nn.param = #nn.param<"v", init = uniform(-1.0, 1.0)>}) -> (tensor<f64> {nn.loss}, tensor<3x12x3x1x2xf64> {nn.output = "o"}) {
  %qp = nn.constant dense<[2, 5, 7, -1, -1, 1, -1, 11, 7, 9, 1, 10]> : tensor<12xi64>
  %kp = nn.constant dense<[-1, -1, -1, -1, -1]> : tensor<5xi64>
  %o, %lse = nn.attention %q, %k, %v positions = %qp, %kp scale = 0.5 {dist.shardings = [#dist.sharding<@mesh, [{?}, {?}, {"z", ?}, {?}, {?}]>, #dist.sharding<@mesh, [{}, {"x"}, {"y"}, {}]>]} : (tensor<3x12x3x1x2xf64>, tensor<3x5x3x2xf64>, tensor<3x5x3x2xf64>, tensor<12xi64>, tensor<5xi64>) -> tensor<3x12x3x1x2xf64>
  %w = nn.tanh %o : tensor<3x12x3x1x2xf64>
  %w2 = nn.mul %w, %w : (tensor<3x12x3x1x2xf64>, tensor<3x12x3x1x2xf64>) -> tensor<3x12x3x1x2xf64>
  %l = nn.reduce sum %w2 dims = [0, 1, 2, 3, 4] : tensor<3x12x3x1x2xf64> -> tensor<f64>
  return %l, %w : tensor<f64>, tensor<3x12x3x1x2xf64>
}
