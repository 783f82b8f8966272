// Queries and keys at places of their own in the sequence, in order and not, some of which do not exist: forward and
// backward, in each type and with results wider than what they are made from, as the interpreter has it.
// DEFINE: %{type} = f64
// DEFINE: %{wide} = f64
// DEFINE: %{sums} = f64
// Outputs are printed with 9 digits.
// DEFINE: %{tolerance} = 1e-9
// DEFINE: %{check} = sed -e 's/TYPE/%{type}/g' -e 's/WIDE/%{wide}/g' -e 's/ACC/%{sums}/g' %s > %t.mlir && \
// DEFINE:   %python %support/interpreted.py %t.mlir --work %t --tolerance %{tolerance} --attention-tiles 96
// RUN: %{check}
// REDEFINE: %{type} = f32
// REDEFINE: %{wide} = f32
// REDEFINE: %{sums} = f32
// REDEFINE: %{tolerance} = 1e-6
// RUN: %{check}
// REDEFINE: %{type} = bf16
// RUN: %{check}
// REDEFINE: %{wide} = bf16
// REDEFINE: %{tolerance} = 1e-2
// RUN: %{check}

// One row each, from the positions as they are.
// RUN: shoalc %t.mlir --mode infer --emit exec -o - | FileCheck %s
// CHECK: exec.attention %{{.*}} positions = %[[QP:.*]], %[[KP:.*]] into %[[O:.*]], %[[LSE:.*]] workspace %{{.*}} causal scale
// CHECK: exec.attention_grad %{{.*}}, %[[O]], %[[LSE]] positions = %[[QP]], %[[KP]] into

// Each of the 12 heads of each of the four calls is two tiles: queries that lie apart in the middle are cut there.
func.func @model() -> (tensor<2x7x2x3x4xWIDE> {nn.output = "o"}, tensor<2x7x2x3x4xWIDE> {nn.output = "dq"}, tensor<2x9x2x4xWIDE> {nn.output = "dk"},
    tensor<2x9x2x4xWIDE> {nn.output = "dv"}, tensor<2x7x2x3x4xWIDE> {nn.output = "sorted_o"}, tensor<2x7x2x3x4xWIDE> {nn.output = "sorted_dq"},
    tensor<2x9x2x4xWIDE> {nn.output = "sorted_dk"}, tensor<2x9x2x4xWIDE> {nn.output = "sorted_dv"}) {
  // Numbers that every type holds: remainders, less 48, in 32nds.
  %i = nn.iota dim = 0 : tensor<336xi64>
  %middle = nn.constant dense<48.0> : tensor<f32>
  %unit = nn.constant dense<0.03125> : tensor<f32>
  %a0 = nn.constant dense<37> : tensor<i64>
  %a1 = nn.constant dense<101> : tensor<i64>
  %a2 = nn.mul %i, %a0 : (tensor<336xi64>, tensor<i64>) -> tensor<336xi64>
  %a3 = nn.div %a2, %a1 : (tensor<336xi64>, tensor<i64>) -> tensor<336xi64>
  %a4 = nn.mul %a3, %a1 : (tensor<336xi64>, tensor<i64>) -> tensor<336xi64>
  %a5 = nn.sub %a2, %a4 : (tensor<336xi64>, tensor<336xi64>) -> tensor<336xi64>
  %a6 = nn.cast %a5 : tensor<336xi64> -> tensor<336xf32>
  %a7 = nn.sub %a6, %middle : (tensor<336xf32>, tensor<f32>) -> tensor<336xf32>
  %a = nn.mul %a7, %unit : (tensor<336xf32>, tensor<f32>) -> tensor<336xf32>
  %b0 = nn.constant dense<59> : tensor<i64>
  %b1 = nn.constant dense<97> : tensor<i64>
  %b2 = nn.mul %i, %b0 : (tensor<336xi64>, tensor<i64>) -> tensor<336xi64>
  %b3 = nn.div %b2, %b1 : (tensor<336xi64>, tensor<i64>) -> tensor<336xi64>
  %b4 = nn.mul %b3, %b1 : (tensor<336xi64>, tensor<i64>) -> tensor<336xi64>
  %b5 = nn.sub %b2, %b4 : (tensor<336xi64>, tensor<336xi64>) -> tensor<336xi64>
  %b6 = nn.cast %b5 : tensor<336xi64> -> tensor<336xf32>
  %b7 = nn.sub %b6, %middle : (tensor<336xf32>, tensor<f32>) -> tensor<336xf32>
  %b = nn.mul %b7, %unit : (tensor<336xf32>, tensor<f32>) -> tensor<336xf32>
  %0 = nn.reshape %a : tensor<336xf32> -> tensor<2x7x2x3x4xf32>
  %q = nn.cast %0 : tensor<2x7x2x3x4xf32> -> tensor<2x7x2x3x4xTYPE>
  %1 = nn.reshape %b : tensor<336xf32> -> tensor<2x7x2x3x4xf32>
  %c = nn.cast %1 : tensor<2x7x2x3x4xf32> -> tensor<2x7x2x3x4xWIDE>
  %2 = nn.slice %a dim = 0 start = 100 : tensor<336xf32> -> tensor<144xf32>
  %3 = nn.reshape %2 : tensor<144xf32> -> tensor<2x9x2x4xf32>
  %k = nn.cast %3 : tensor<2x9x2x4xf32> -> tensor<2x9x2x4xTYPE>
  %4 = nn.slice %b dim = 0 start = 50 : tensor<336xf32> -> tensor<144xf32>
  %5 = nn.reshape %4 : tensor<144xf32> -> tensor<2x9x2x4xf32>
  %v = nn.cast %5 : tensor<2x9x2x4xf32> -> tensor<2x9x2x4xTYPE>
  %at = nn.constant dense<[12, 3, -1, 0, 7, 8, 20]> : tensor<7xi64>
  %of = nn.constant dense<[2, 9, -4, 8, 5, 7, 1, 19, 11]> : tensor<9xi64>
  %in = nn.constant dense<[1, 2, 5, 7, -4, 8, 11, 19, -1]> : tensor<9xi64>
  %o, %lse = nn.attention %q, %k, %v positions = %at, %of causal scale = 0.5 : (tensor<2x7x2x3x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<7xi64>, tensor<9xi64>) -> tensor<2x7x2x3x4xWIDE>
  %d:3 = nn.attention_grad %c, %q, %k, %v, %o, %lse positions = %at, %of causal scale = 0.5 : (tensor<2x7x2x3x4xWIDE>, tensor<2x7x2x3x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<2x7x2x3x4xWIDE>, tensor<2x7x2x3xACC>, tensor<7xi64>, tensor<9xi64>) -> (tensor<2x7x2x3x4xWIDE>, tensor<2x9x2x4xWIDE>, tensor<2x9x2x4xWIDE>)
  %r, %sum = nn.attention %q, %k, %v positions = %at, %in causal window = 6 scale = 0.5 : (tensor<2x7x2x3x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<7xi64>, tensor<9xi64>) -> tensor<2x7x2x3x4xWIDE>
  %e:3 = nn.attention_grad %c, %q, %k, %v, %r, %sum positions = %at, %in causal window = 6 scale = 0.5 : (tensor<2x7x2x3x4xWIDE>, tensor<2x7x2x3x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<2x9x2x4xTYPE>, tensor<2x7x2x3x4xWIDE>, tensor<2x7x2x3xACC>, tensor<7xi64>, tensor<9xi64>) -> (tensor<2x7x2x3x4xWIDE>, tensor<2x9x2x4xWIDE>, tensor<2x9x2x4xWIDE>)
  return %o, %d#0, %d#1, %d#2, %r, %e#0, %e#1, %e#2 : tensor<2x7x2x3x4xWIDE>, tensor<2x7x2x3x4xWIDE>, tensor<2x9x2x4xWIDE>, tensor<2x9x2x4xWIDE>, tensor<2x7x2x3x4xWIDE>, tensor<2x7x2x3x4xWIDE>, tensor<2x9x2x4xWIDE>, tensor<2x9x2x4xWIDE>
}
