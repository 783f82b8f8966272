// What is rounding is no difference: a gradient that is mathematically 0, which Adam divides by itself, and the gradient of
// a layer norm over two elements, small beside the reciprocal of their deviation that it is multiplied with.
// RUN: split-file %s %t
// RUN: shoalc %t/shift.mlir -o /dev/null --emit local --verify-plan --mesh data=2 --optimizer adam
// RUN: shoalc %t/shift.mlir -o /dev/null --emit local --verify-plan --mesh data=2 --optimizer adam --zero 1
// RUN: shoalc %t/shift.mlir -o /dev/null --emit local --verify-plan --mesh data=3 --optimizer adam --eps 1e-16
// RUN: shoalc %t/pairs.mlir -o /dev/null --emit local --verify-plan --mesh tensor=2 --dtype bf16
// RUN: shoalc %t/pairs.mlir -o /dev/null --emit local --verify-plan --mesh tensor=2 --dtype bf16 --microbatches 3 --optimizer adam

// Under ZeRO a sum of squares on the way to the norm is that of other tensors than on one device.
// RUN: shoalc %t/sums.mlir -o /dev/null --emit local --verify-plan --mesh data=2 --zero 1 --grad-norm
// RUN: shoalc %t/sums.mlir -o /dev/null --emit local --verify-plan --mesh data=2 --zero 2 --clip-grad-norm 0.1 --bucket-mb 0.00005

// What is no rounding is found in an update of Adam, too.
// RUN: shoalc %t/shift.mlir -o %t/one.mlir --emit global --optimizer adam --mesh data=2
// RUN: shoal-opt %t/one.mlir --dist-partition --dist-verify-local -o %t/local.mlir
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/one.mlir" -o /dev/null
// RUN: sed 's/beta1 = 9.0*e-01/beta1 = 8.9e-01/' %t/local.mlir > %t/beta.mlir
// RUN: not shoal-opt %t/beta.mlir --dist-verify-plan="reference=%t/one.mlir" -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: the plan differs from one device first at nn.adam_update

//--- shift.mlir
func.func @shift(
    %x: tensor<5x4xf64> {nn.input = "x"}, %y: tensor<5x4xf64> {nn.input = "y"},
    %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.4)>},
    %s: tensor<1xf64> {nn.param = #nn.param<"s", init = normal(0.0, 0.4)>},
    %g: tensor<4xf64> {nn.param = #nn.param<"g", init = ones>},
    %b: tensor<4xf64> {nn.param = #nn.param<"b", init = zeros>}) -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<5x4xf64>, tensor<4x4xf64>) -> tensor<5x4xf64>
  %1 = nn.add %0, %s : (tensor<5x4xf64>, tensor<1xf64>) -> tensor<5x4xf64>
  %2:3 = nn.layer_norm %1, %g, %b eps = 1.0e-5 : tensor<5x4xf64>, tensor<4xf64>
  %l = nn.mse_loss mean %2#0, %y : (tensor<5x4xf64>, tensor<5x4xf64>) -> tensor<f64>
  return %l : tensor<f64>
}

//--- pairs.mlir
func.func @pairs(
    %ids: tensor<7x1xi64> {nn.input = "ids"}, %y: tensor<7x1x5xf64> {nn.input = "y"},
    %t: tensor<5x2xf64> {nn.param = #nn.param<"p0", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %g: tensor<2xf64> {nn.param = #nn.param<"p3", init = uniform(0.1, 0.6)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %b: tensor<2xf64> {nn.param = #nn.param<"p4", init = normal(0.0, 0.4)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %w: tensor<2x2xf64> {nn.param = #nn.param<"p5", init = uniform(0.1, 0.6)>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.embedding %t, %ids : (tensor<5x2xf64>, tensor<7x1xi64>) -> tensor<7x1x2xf64>
  %1:3 = nn.layer_norm %0, %g, %b eps = 1.0e-5 : tensor<7x1x2xf64>, tensor<2xf64>
  %2 = nn.matmul %1#0, %w : (tensor<7x1x2xf64>, tensor<2x2xf64>) -> tensor<7x1x2xf64>
  %3 = nn.tensordot %2, %t axes = 1 {transpose_b} : (tensor<7x1x2xf64>, tensor<5x2xf64>) -> tensor<7x1x5xf64>
  %l = nn.mse_loss mean %3, %y : (tensor<7x1x5xf64>, tensor<7x1x5xf64>) -> tensor<f64>
  return %l : tensor<f64>
}

//--- sums.mlir
func.func @sums(
    %x: tensor<3x4xf64> {nn.input = "x"}, %y: tensor<3xi64> {nn.input = "y"},
    %a: tensor<4x3xf64> {nn.param = #nn.param<"a", init = normal(0.0, 0.4)>},
    %p: tensor<1xf64> {nn.param = #nn.param<"p", init = normal(0.0, 0.4)>},
    %q: tensor<1xf64> {nn.param = #nn.param<"q", init = uniform(0.1, 0.6)>},
    %b: tensor<3x2xf64> {nn.param = #nn.param<"b", init = uniform(0.1, 0.6)>},
    %c: tensor<2x3xf64> {nn.param = #nn.param<"c", init = uniform(-0.5, 0.5)>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %a : (tensor<3x4xf64>, tensor<4x3xf64>) -> tensor<3x3xf64>
  %1 = nn.add %0, %p {nn.layer = "h.1"} : (tensor<3x3xf64>, tensor<1xf64>) -> tensor<3x3xf64>
  %2 = nn.add %1, %q {nn.layer = "h.1"} : (tensor<3x3xf64>, tensor<1xf64>) -> tensor<3x3xf64>
  %3 = nn.matmul %2, %b : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  %4 = nn.matmul %3, %c : (tensor<3x2xf64>, tensor<2x3xf64>) -> tensor<3x3xf64>
  %l:2 = nn.cross_entropy sum %4, %y : (tensor<3x3xf64>, tensor<3xi64>) -> tensor<f64>
  return %l#0 : tensor<f64>
}
