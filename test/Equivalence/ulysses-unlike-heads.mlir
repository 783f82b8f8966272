// Layers of unlike heads share one axis of Ulysses: it is split such that key/value heads of each have the part that divides them.
// RUN: shoalc %s --mesh context=6 --context-parallel ulysses --optimizer adam --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=6 --context-parallel ulysses --optimizer adam --emit local -o - | FileCheck %s --check-prefix=LOCAL
// RUN: shoalc %s --mesh data=2,context=6 --context-parallel ulysses --zero 3 --optimizer adam --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=2,ulysses=6 --context-parallel hybrid --optimizer adam --verify-plan 2>&1 | FileCheck %s
// One that is not dealt out alone is told by its own heads.
// RUN: not shoalc %s --mesh context=12 --context-parallel ulysses --emit local -o %t.none.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// CHECK: the plan equals one device, --mode train
// CHECK: the plan equals one device, --mode eval
// LOCAL: nn.attention {{.*}} -> tensor<2x12x1x1x2xf64>
// LOCAL: nn.attention {{.*}} -> tensor<2x12x1x1x2xf64>
// NONE: error: Ulysses deals 12 devices out {{.*}}, got: 2 key/value heads of 3 query heads each; take
func.func @m(%a0: tensor<2x12x12xf64> {nn.input = "x"}, %w0: tensor<12x12xf64> {nn.param = #nn.param<"w0", init = kaiming_uniform>}, %w1: tensor<12x12xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>}) -> (tensor<f64> {nn.loss}) {
  %h0 = nn.matmul %a0, %w0 : (tensor<2x12x12xf64>, tensor<12x12xf64>) -> tensor<2x12x12xf64>
  %q0 = nn.reshape %h0 : tensor<2x12x12xf64> -> tensor<2x12x2x3x2xf64>
  %s0 = nn.slice %h0 dim = 2 start = 0 : tensor<2x12x12xf64> -> tensor<2x12x4xf64>
  %k0 = nn.reshape %s0 : tensor<2x12x4xf64> -> tensor<2x12x2x2xf64>
  %o0, %l0 = nn.attention %q0, %k0, %k0 causal scale = 0.5 : (tensor<2x12x2x3x2xf64>, tensor<2x12x2x2xf64>, tensor<2x12x2x2xf64>) -> tensor<2x12x2x3x2xf64>
  %a1 = nn.reshape %o0 : tensor<2x12x2x3x2xf64> -> tensor<2x12x12xf64>
  %h1 = nn.matmul %a1, %w1 : (tensor<2x12x12xf64>, tensor<12x12xf64>) -> tensor<2x12x12xf64>
  %q1 = nn.reshape %h1 : tensor<2x12x12xf64> -> tensor<2x12x3x2x2xf64>
  %s1 = nn.slice %h1 dim = 2 start = 0 : tensor<2x12x12xf64> -> tensor<2x12x6xf64>
  %k1 = nn.reshape %s1 : tensor<2x12x6xf64> -> tensor<2x12x3x2xf64>
  %o1, %l1 = nn.attention %q1, %k1, %k1 causal scale = 0.5 : (tensor<2x12x3x2x2xf64>, tensor<2x12x3x2xf64>, tensor<2x12x3x2xf64>) -> tensor<2x12x3x2x2xf64>
  %a2 = nn.reshape %o1 : tensor<2x12x3x2x2xf64> -> tensor<2x12x12xf64>
  %z = nn.reduce sum %a2 dims = [0, 1, 2] : tensor<2x12x12xf64> -> tensor<f64>
  return %z : tensor<f64>
}
