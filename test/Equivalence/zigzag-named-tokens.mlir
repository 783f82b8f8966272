// Integers that name tokens name those of the model's order, also where a plan stores tokens in another one. The reference is the
// program before the plan: behind it, both would be wrong alike.
// RUN: split-file %s %t
// RUN: shoalc %t/span.mlir --mesh context=2 --context-parallel zigzag --optimizer sgd --lr 0.1 --verify-plan --emit local -o %t/span.local.mlir 2>&1 | FileCheck %s
// RUN: shoalc %t/span.mlir --mesh context=3,data=2 --context-parallel zigzag --microbatches 1 --optimizer sgd --lr 0.1 --verify-plan --emit local -o %t/span3.local.mlir 2>&1 | FileCheck %s
// RUN: shoalc %t/rows.mlir --mesh context=2 --context-parallel zigzag --optimizer sgd --lr 0.1 --verify-plan --emit local -o %t/rows.local.mlir 2>&1 | FileCheck %s
// CHECK: the plan equals one device
// The class of a span's beginning is a token.
//--- span.mlir
func.func @span(%x: tensor<2x12x8xf64> {nn.input = "x"}, %y: tensor<2xi64> {nn.input = "y"},
   %w: tensor<8x8xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>}, %p: tensor<12x8xf64> {nn.param = #nn.param<"p", init = kaiming_uniform>},
   %u: tensor<8x1xf64> {nn.param = #nn.param<"u", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}) {
  %xp = nn.add %x, %p : (tensor<2x12x8xf64>, tensor<12x8xf64>) -> tensor<2x12x8xf64>
  %h = nn.matmul %xp, %w : (tensor<2x12x8xf64>, tensor<8x8xf64>) -> tensor<2x12x8xf64>
  %q = nn.reshape %h : tensor<2x12x8xf64> -> tensor<2x12x2x1x4xf64>
  %k = nn.reshape %h : tensor<2x12x8xf64> -> tensor<2x12x2x4xf64>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<2x12x2x1x4xf64>, tensor<2x12x2x4xf64>, tensor<2x12x2x4xf64>) -> tensor<2x12x2x1x4xf64>
  %a = nn.reshape %o : tensor<2x12x2x1x4xf64> -> tensor<2x12x8xf64>
  %s = nn.matmul %a, %u : (tensor<2x12x8xf64>, tensor<8x1xf64>) -> tensor<2x12x1xf64>
  %l = nn.reshape %s : tensor<2x12x1xf64> -> tensor<2x12xf64>
  %loss, %rows = nn.cross_entropy mean %l, %y : (tensor<2x12xf64>, tensor<2xi64>) -> tensor<f64>
  return %loss : tensor<f64>
}

// Tokens are picked by number.
//--- rows.mlir
func.func @m(%x: tensor<1x12x8xf64> {nn.input = "x"}, %y: tensor<1x3xi64> {nn.input = "y"},
   %w: tensor<8x8xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}) {
  %h = nn.matmul %x, %w : (tensor<1x12x8xf64>, tensor<8x8xf64>) -> tensor<1x12x8xf64>
  %q = nn.reshape %h : tensor<1x12x8xf64> -> tensor<1x12x2x1x4xf64>
  %k = nn.reshape %h : tensor<1x12x8xf64> -> tensor<1x12x2x4xf64>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<1x12x2x1x4xf64>, tensor<1x12x2x4xf64>, tensor<1x12x2x4xf64>) -> tensor<1x12x2x1x4xf64>
  %a = nn.reshape %o : tensor<1x12x2x1x4xf64> -> tensor<12x8xf64>
  %r = nn.embedding %a, %y : (tensor<12x8xf64>, tensor<1x3xi64>) -> tensor<1x3x8xf64>
  %rr = nn.mul %r, %r : (tensor<1x3x8xf64>, tensor<1x3x8xf64>) -> tensor<1x3x8xf64>
  %loss = nn.reduce sum %rr dims = [0, 1, 2] : tensor<1x3x8xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
