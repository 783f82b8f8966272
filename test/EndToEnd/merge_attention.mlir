// Attention over two parts of the keys, merged, is attention over all of them, in real kernels of every type: scores of up
// to 1000, queries of which one part or both see no key. Of bf16 the parts are merged in f32.
// DEFINE: %{type} =
// DEFINE: %{wide} =
// DEFINE: %{off} =
// DEFINE: %{check} = sed -e 's/TYPE/%{type}/g' -e 's/WIDE/%{wide}/g' -e 's/OFF/%{off}/g' %s > %t.mlir && \
// DEFINE:   shoalc %t.mlir -o %t.exe && %t.exe --print | FileCheck %s && \
// DEFINE:   shoal-opt %t.mlir --interpret="outputs" -o /dev/null | FileCheck %s
// REDEFINE: %{type} = f64
// REDEFINE: %{wide} = f64
// REDEFINE: %{off} = 1.0e-12
// RUN: %{check}
// REDEFINE: %{type} = f32
// REDEFINE: %{wide} = f32
// REDEFINE: %{off} = 1.0e-4
// RUN: %{check}
// REDEFINE: %{type} = bf16
// REDEFINE: %{off} = 3.0e-2
// RUN: %{check}

// Of 2 x 6 queries of 6 heads two see nothing, and so have zeros.
// CHECK-DAG: rank 0 wrong: 0{{$}}
// CHECK-DAG: rank 0 wrong_lse: 0{{$}}
// CHECK-DAG: rank 0 empty: 12{{$}}
// CHECK-DAG: rank 0 nonzero: 0{{$}}

func.func @merged() -> (tensor<i64> {nn.output = "wrong"}, tensor<i64> {nn.output = "wrong_lse"}, tensor<i64> {nn.output = "empty"},
                        tensor<i64> {nn.output = "nonzero"}) {
  // Numbers between -1 and 1, and queries so large that scores are between -1000 and 1000.
  %i = nn.iota dim = 0 : tensor<360xi64>
  %x = nn.cast %i : tensor<360xi64> -> tensor<360xf64>
  %step = nn.constant dense<1.7> : tensor<f64>
  %angles = nn.mul %x, %step : (tensor<360xf64>, tensor<f64>) -> tensor<360xf64>
  %sines = nn.sin %angles : tensor<360xf64>
  %cosines = nn.cos %x : tensor<360xf64>
  %q0 = nn.reshape %sines : tensor<360xf64> -> tensor<2x6x2x3x5xf64>
  %k0 = nn.slice %cosines dim = 0 start = 7 : tensor<360xf64> -> tensor<140xf64>
  %k1 = nn.reshape %k0 : tensor<140xf64> -> tensor<2x7x2x5xf64>
  %v0 = nn.slice %sines dim = 0 start = 50 : tensor<360xf64> -> tensor<140xf64>
  %v1 = nn.reshape %v0 : tensor<140xf64> -> tensor<2x7x2x5xf64>
  %q = nn.cast %q0 : tensor<2x6x2x3x5xf64> -> tensor<2x6x2x3x5xTYPE>
  %k = nn.cast %k1 : tensor<2x7x2x5xf64> -> tensor<2x7x2x5xTYPE>
  %v = nn.cast %v1 : tensor<2x7x2x5xf64> -> tensor<2x7x2x5xTYPE>
  %s = nn.constant dense<[[0, 0, 1, 1, 2, 3], [0, 1, 2, 4, 1, 9]]> : tensor<2x6xi64>
  %t = nn.constant dense<[[0, 1, 0, 1, 0, 1, 2], [0, 1, 2, 2, 2, 4, 4]]> : tensor<2x7xi64>

  %o, %lse = nn.attention %q, %k, %v segments = %s, %t scale = 400.0 : (tensor<2x6x2x3x5xTYPE>, tensor<2x7x2x5xTYPE>, tensor<2x7x2x5xTYPE>, tensor<2x6xi64>, tensor<2x7xi64>) -> tensor<2x6x2x3x5xTYPE>

  %ka = nn.slice %k dim = 1 start = 0 : tensor<2x7x2x5xTYPE> -> tensor<2x4x2x5xTYPE>
  %kb = nn.slice %k dim = 1 start = 4 : tensor<2x7x2x5xTYPE> -> tensor<2x3x2x5xTYPE>
  %va = nn.slice %v dim = 1 start = 0 : tensor<2x7x2x5xTYPE> -> tensor<2x4x2x5xTYPE>
  %vb = nn.slice %v dim = 1 start = 4 : tensor<2x7x2x5xTYPE> -> tensor<2x3x2x5xTYPE>
  %ta = nn.slice %t dim = 1 start = 0 : tensor<2x7xi64> -> tensor<2x4xi64>
  %tb = nn.slice %t dim = 1 start = 4 : tensor<2x7xi64> -> tensor<2x3xi64>
  %oa, %la = nn.attention %q, %ka, %va segments = %s, %ta scale = 400.0 : (tensor<2x6x2x3x5xTYPE>, tensor<2x4x2x5xTYPE>, tensor<2x4x2x5xTYPE>, tensor<2x6xi64>, tensor<2x4xi64>) -> tensor<2x6x2x3x5xTYPE>
  %ob, %lb = nn.attention %q, %kb, %vb segments = %s, %tb scale = 400.0 : (tensor<2x6x2x3x5xTYPE>, tensor<2x3x2x5xTYPE>, tensor<2x3x2x5xTYPE>, tensor<2x6xi64>, tensor<2x3xi64>) -> tensor<2x6x2x3x5xTYPE>
  %wa = nn.cast %oa : tensor<2x6x2x3x5xTYPE> -> tensor<2x6x2x3x5xWIDE>
  %wb = nn.cast %ob : tensor<2x6x2x3x5xTYPE> -> tensor<2x6x2x3x5xWIDE>
  %m, %lm = nn.merge_attention %wa, %la, %wb, %lb : tensor<2x6x2x3x5xWIDE>

  // Compared from both sides: -inf less -inf is no number.
  %w = nn.cast %o : tensor<2x6x2x3x5xTYPE> -> tensor<2x6x2x3x5xWIDE>
  %allowed = nn.constant dense<OFF> : tensor<WIDE>
  %low = nn.sub %w, %allowed : (tensor<2x6x2x3x5xWIDE>, tensor<WIDE>) -> tensor<2x6x2x3x5xWIDE>
  %high = nn.add %w, %allowed : (tensor<2x6x2x3x5xWIDE>, tensor<WIDE>) -> tensor<2x6x2x3x5xWIDE>
  %above = nn.compare ge %m, %low : (tensor<2x6x2x3x5xWIDE>, tensor<2x6x2x3x5xWIDE>) -> tensor<2x6x2x3x5xi1>
  %below = nn.compare le %m, %high : (tensor<2x6x2x3x5xWIDE>, tensor<2x6x2x3x5xWIDE>) -> tensor<2x6x2x3x5xi1>
  %above_one = nn.cast %above : tensor<2x6x2x3x5xi1> -> tensor<2x6x2x3x5xi64>
  %below_one = nn.cast %below : tensor<2x6x2x3x5xi1> -> tensor<2x6x2x3x5xi64>
  %right = nn.mul %above_one, %below_one : (tensor<2x6x2x3x5xi64>, tensor<2x6x2x3x5xi64>) -> tensor<2x6x2x3x5xi64>
  %count = nn.reduce sum %right dims = [0, 1, 2, 3, 4] : tensor<2x6x2x3x5xi64> -> tensor<i64>
  %elements = nn.constant dense<360> : tensor<i64>
  %wrong = nn.sub %elements, %count : (tensor<i64>, tensor<i64>) -> tensor<i64>

  %share = nn.constant dense<1.0e-5> : tensor<WIDE>
  %lse_max = nn.constant dense<1.0e3> : tensor<WIDE>
  %room = nn.mul %lse_max, %share : (tensor<WIDE>, tensor<WIDE>) -> tensor<WIDE>
  %lse_low = nn.sub %lse, %room : (tensor<2x6x2x3xWIDE>, tensor<WIDE>) -> tensor<2x6x2x3xWIDE>
  %lse_high = nn.add %lse, %room : (tensor<2x6x2x3xWIDE>, tensor<WIDE>) -> tensor<2x6x2x3xWIDE>
  %lse_above = nn.compare ge %lm, %lse_low : (tensor<2x6x2x3xWIDE>, tensor<2x6x2x3xWIDE>) -> tensor<2x6x2x3xi1>
  %lse_below = nn.compare le %lm, %lse_high : (tensor<2x6x2x3xWIDE>, tensor<2x6x2x3xWIDE>) -> tensor<2x6x2x3xi1>
  %lse_above_one = nn.cast %lse_above : tensor<2x6x2x3xi1> -> tensor<2x6x2x3xi64>
  %lse_below_one = nn.cast %lse_below : tensor<2x6x2x3xi1> -> tensor<2x6x2x3xi64>
  %lse_right = nn.mul %lse_above_one, %lse_below_one : (tensor<2x6x2x3xi64>, tensor<2x6x2x3xi64>) -> tensor<2x6x2x3xi64>
  %lse_count = nn.reduce sum %lse_right dims = [0, 1, 2, 3] : tensor<2x6x2x3xi64> -> tensor<i64>
  %rows = nn.constant dense<72> : tensor<i64>
  %wrong_lse = nn.sub %rows, %lse_count : (tensor<i64>, tensor<i64>) -> tensor<i64>

  %least = nn.constant dense<-1.0e30> : tensor<WIDE>
  %is_empty = nn.compare lt %lm, %least : (tensor<2x6x2x3xWIDE>, tensor<WIDE>) -> tensor<2x6x2x3xi1>
  %empty_one = nn.cast %is_empty : tensor<2x6x2x3xi1> -> tensor<2x6x2x3xi64>
  %empty = nn.reduce sum %empty_one dims = [0, 1, 2, 3] : tensor<2x6x2x3xi64> -> tensor<i64>
  %zero = nn.constant dense<0.0> : tensor<WIDE>
  %is_nonzero = nn.compare ne %m, %zero : (tensor<2x6x2x3x5xWIDE>, tensor<WIDE>) -> tensor<2x6x2x3x5xi1>
  %nonzero_one = nn.cast %is_nonzero : tensor<2x6x2x3x5xi1> -> tensor<2x6x2x3x5xi64>
  %empty_rows = nn.reshape %empty_one : tensor<2x6x2x3xi64> -> tensor<2x6x2x3x1xi64>
  %nonzero_empty = nn.mul %nonzero_one, %empty_rows : (tensor<2x6x2x3x5xi64>, tensor<2x6x2x3x1xi64>) -> tensor<2x6x2x3x5xi64>
  %nonzero = nn.reduce sum %nonzero_empty dims = [0, 1, 2, 3, 4] : tensor<2x6x2x3x5xi64> -> tensor<i64>
  return %wrong, %wrong_lse, %empty, %nonzero : tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>
}
