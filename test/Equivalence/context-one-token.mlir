// One token is no sequence that a value could have twice: its size is that of dimensions from elsewhere, too.
// RUN: shoalc %s --mesh context=2 --context-parallel ring --optimizer adam --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=2 --context-parallel allgather --optimizer adam --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=2 --context-parallel ulysses --optimizer adam --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=2 --context-parallel zigzag --optimizer adam --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=2,ulysses=2 --context-parallel hybrid --optimizer adam --verify-plan 2>&1 | FileCheck %s
// CHECK: the plan equals one device, --mode train
// CHECK: the plan equals one device, --mode eval
func.func @m(
    %ids: tensor<4x1xi64> {nn.input = "ids"},
    %y: tensor<4x1xi64> {nn.input = "y"},
    %e: tensor<3x4xf64> {nn.param = #nn.param<"e", init = normal(0.0, 0.5)>},
    %t: tensor<1x1x4xf64> {nn.param = #nn.param<"t", init = normal(0.0, 0.5)>},
    %kw: tensor<4x2x2xf64> {nn.param = #nn.param<"kw", init = normal(0.0, 0.5)>},
    %w: tensor<4x3xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<4x1x3xf64> {nn.output = "logits"}) {
  %g = nn.embedding %e, %ids : (tensor<3x4xf64>, tensor<4x1xi64>) -> tensor<4x1x4xf64>
  %x = nn.add %g, %t : (tensor<4x1x4xf64>, tensor<1x1x4xf64>) -> tensor<4x1x4xf64>
  %q = nn.reshape %x : tensor<4x1x4xf64> -> tensor<4x1x2x1x2xf64>
  %k = nn.tensordot %x, %kw axes = 1 : (tensor<4x1x4xf64>, tensor<4x2x2xf64>) -> tensor<4x1x2x2xf64>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<4x1x2x1x2xf64>, tensor<4x1x2x2xf64>, tensor<4x1x2x2xf64>) -> tensor<4x1x2x1x2xf64>
  %p = nn.reshape %o : tensor<4x1x2x1x2xf64> -> tensor<4x1x4xf64>
  %l = nn.matmul %p, %w : (tensor<4x1x4xf64>, tensor<4x3xf64>) -> tensor<4x1x3xf64>
  %loss, %lsel = nn.cross_entropy mean %l, %y : (tensor<4x1x3xf64>, tensor<4x1xi64>) -> tensor<f64>
  return %loss, %l : tensor<f64>, tensor<4x1x3xf64>
}
