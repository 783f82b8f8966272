// A reshape that puts rows and tokens into one dimension, in models of a sequence over mesh axes.
// RUN: split-file %s %t
// With one row on each device of data, the dimension could be sharded over both axes, but they are partitioned in two runs.
// RUN: shoalc %t/one-row.mlir --mesh data=2,context=2 --context-parallel ring --optimizer sgd --lr 0.1 --verify-plan --emit local -o %t/ring.local.mlir 2>&1 | FileCheck %s
// RUN: shoalc %t/one-row.mlir --mesh context=2,data=2 --context-parallel zigzag --optimizer sgd --lr 0.1 --verify-plan --emit local -o %t/zigzag.local.mlir 2>&1 | FileCheck %s
// Partial sums over tensor pass the change of order in front of the reshape, which only moves them.
// RUN: shoalc %t/partial.mlir --mesh tensor=2,context=3 --context-parallel zigzag --tensor-parallel --optimizer sgd --lr 0.1 --verify-plan --emit local -o %t/partial.local.mlir 2>&1 | FileCheck %s
// Where no input has the sequence apart from rows, what a reshape splits off begins it: in inference labels do not tell.
// RUN: shoalc %t/begins.mlir --mesh context=3 --context-parallel ring --mode infer --verify-plan --emit local -o %t/begins.ring.mlir 2>&1 | FileCheck %s --check-prefix=INFER
// RUN: grep -c dist.permute_start %t/begins.ring.mlir | grep -x 2
// RUN: shoalc %t/begins.mlir --mesh context=2 --context-parallel ulysses --mode infer --verify-plan --emit local -o %t/begins.ulysses.mlir 2>&1 | FileCheck %s --check-prefix=INFER
// RUN: FileCheck %s --check-prefix=HEADS < %t/begins.ulysses.mlir
// RUN: shoalc %t/begins.mlir --mesh pipe=2,context=2 --context-parallel allgather --mode infer --verify-plan 2>&1 | FileCheck %s --check-prefix=INFER
// RUN: shoalc %t/begins.mlir --mesh context=3 --context-parallel ring --optimizer sgd --lr 0.1 --verify-plan 2>&1 | FileCheck %s
// INFER: the plan equals one device, --mode infer
// HEADS: nn.attention {{.*}} -> tensor<2x6x1x1x2xf64>
// CHECK: the plan equals one device, --mode train
//--- one-row.mlir
func.func @m(
    %x: tensor<2x4x3xf64> {nn.input = "x"},
    %w: tensor<3x3xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<2x4x3xf64> {nn.output = "h"}) {
  %g = nn.matmul %x, %w : (tensor<2x4x3xf64>, tensor<3x3xf64>) -> tensor<2x4x3xf64>
  %q = nn.reshape %g : tensor<2x4x3xf64> -> tensor<2x4x1x1x3xf64>
  %k = nn.reshape %g : tensor<2x4x3xf64> -> tensor<2x4x1x3xf64>
  %o, %lse = nn.attention %q, %k, %k scale = 0.5 : (tensor<2x4x1x1x3xf64>, tensor<2x4x1x3xf64>, tensor<2x4x1x3xf64>) -> tensor<2x4x1x1x3xf64>
  %p = nn.reshape %o : tensor<2x4x1x1x3xf64> -> tensor<2x4x3xf64>
  %pp = nn.add %p, %x : (tensor<2x4x3xf64>, tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  %f = nn.reshape %pp : tensor<2x4x3xf64> -> tensor<8x3xf64>
  %h = nn.matmul %f, %w : (tensor<8x3xf64>, tensor<3x3xf64>) -> tensor<8x3xf64>
  %h2 = nn.reshape %h : tensor<8x3xf64> -> tensor<2x4x3xf64>
  %h3 = nn.mul %h2, %h2 : (tensor<2x4x3xf64>, tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  %loss = nn.reduce sum %h3 dims = [0, 1, 2] : tensor<2x4x3xf64> -> tensor<f64>
  return %loss, %h2 : tensor<f64>, tensor<2x4x3xf64>
}
//--- partial.mlir

func.func @m(
    %x: tensor<3x3x2xf64> {nn.input = "x"},
    %y: tensor<3x3xi64> {nn.input = "y"},
    %p1: tensor<2xf64> {nn.param = #nn.param<"p1", init = normal(0.0, 0.5)>},
    %p2: tensor<2xf64> {nn.param = #nn.param<"p2", init = normal(0.0, 0.5)>},
    %p3: tensor<2x16xf64> {nn.param = #nn.param<"p3", init = normal(0.0, 0.5)>},
    %p4: tensor<2x4x4xf64> {nn.param = #nn.param<"p4", init = normal(0.0, 0.5)>},
    %p6: tensor<16x2xf64> {nn.param = #nn.param<"p6", init = normal(0.0, 0.5)>},
    %p7: tensor<2x2xf64> {nn.param = #nn.param<"p7", init = normal(0.0, 0.5)>},
    %p8: tensor<2x2xf64> {nn.param = #nn.param<"p8", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<3x3x2xf64> {nn.output = "logits"}) {
  %v2, %v2_m, %v2_r = nn.layer_norm %x, %p1, %p2 eps = 1.0e-2 {nn.layer = "h.0"} : tensor<3x3x2xf64>, tensor<2xf64>
  %v3 = nn.matmul %v2, %p3 {nn.layer = "h.0"} : (tensor<3x3x2xf64>, tensor<2x16xf64>) -> tensor<3x3x16xf64>
  %v4 = nn.reshape %v3 {nn.layer = "h.0"} : tensor<3x3x16xf64> -> tensor<3x3x4x1x4xf64>
  %v5 = nn.tensordot %v2, %p4 axes = 1 {nn.layer = "h.0"} : (tensor<3x3x2xf64>, tensor<2x4x4xf64>) -> tensor<3x3x4x4xf64>
  %v7, %v7_lse = nn.attention %v4, %v5, %v5 causal scale = 1.0 {nn.layer = "h.0"} : (tensor<3x3x4x1x4xf64>, tensor<3x3x4x4xf64>, tensor<3x3x4x4xf64>) -> tensor<3x3x4x1x4xf64>
  %v8 = nn.reshape %v7 {nn.layer = "h.0"} : tensor<3x3x4x1x4xf64> -> tensor<3x3x16xf64>
  %v9 = nn.matmul %v8, %p6 {nn.layer = "h.0"} : (tensor<3x3x16xf64>, tensor<16x2xf64>) -> tensor<3x3x2xf64>
  %v10 = nn.add %x, %v9 {nn.layer = "h.0"} : (tensor<3x3x2xf64>, tensor<3x3x2xf64>) -> tensor<3x3x2xf64>
  %v11 = nn.reshape %v10 {nn.layer = "h.0"} : tensor<3x3x2xf64> -> tensor<9x2xf64>
  %v12 = nn.matmul %v11, %p7 {nn.layer = "h.0"} : (tensor<9x2xf64>, tensor<2x2xf64>) -> tensor<9x2xf64>
  %v13 = nn.reshape %v12 {nn.layer = "h.0"} : tensor<9x2xf64> -> tensor<3x3x2xf64>
  %v14 = nn.transpose %v13 [0, 2, 1] {nn.layer = "h.0"} : tensor<3x3x2xf64> -> tensor<3x2x3xf64>
  %v17 = nn.matmul %v13, %p8 : (tensor<3x3x2xf64>, tensor<2x2xf64>) -> tensor<3x3x2xf64>
  %v18 = nn.reshape %v17 : tensor<3x3x2xf64> -> tensor<9x2xf64>
  %v19 = nn.reshape %y : tensor<3x3xi64> -> tensor<9xi64>
  %v20, %v20_lse = nn.cross_entropy mean %v18, %v19 : (tensor<9x2xf64>, tensor<9xi64>) -> tensor<f64>
  return %v20, %v17 : tensor<f64>, tensor<3x3x2xf64>
}
//--- begins.mlir
func.func @m(
    %x: tensor<2x6x4xf64> {nn.input = "x"},
    %y: tensor<2x6xi64> {nn.input = "y"},
    %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %v: tensor<4x3xf64> {nn.param = #nn.param<"v", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<2x6x3xf64> {nn.output = "logits"}) {
  %f = nn.reshape %x {nn.layer = "h.0"} : tensor<2x6x4xf64> -> tensor<12x4xf64>
  %g = nn.matmul %f, %w {nn.layer = "h.0"} : (tensor<12x4xf64>, tensor<4x4xf64>) -> tensor<12x4xf64>
  %h = nn.reshape %g {nn.layer = "h.0"} : tensor<12x4xf64> -> tensor<2x6x4xf64>
  %q = nn.reshape %h {nn.layer = "h.0"} : tensor<2x6x4xf64> -> tensor<2x6x2x1x2xf64>
  %k = nn.reshape %h {nn.layer = "h.0"} : tensor<2x6x4xf64> -> tensor<2x6x2x2xf64>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 {nn.layer = "h.0"} : (tensor<2x6x2x1x2xf64>, tensor<2x6x2x2xf64>, tensor<2x6x2x2xf64>) -> tensor<2x6x2x1x2xf64>
  %p = nn.reshape %o {nn.layer = "h.1"} : tensor<2x6x2x1x2xf64> -> tensor<2x6x4xf64>
  %l = nn.matmul %p, %v {nn.layer = "h.1"} : (tensor<2x6x4xf64>, tensor<4x3xf64>) -> tensor<2x6x3xf64>
  %loss, %lsel = nn.cross_entropy mean %l, %y : (tensor<2x6x3xf64>, tensor<2x6xi64>) -> tensor<f64>
  return %loss, %l : tensor<f64>, tensor<2x6x3xf64>
}
