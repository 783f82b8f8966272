// RUN: shoal-opt %s --split-input-file --pass-pipeline="builtin.module(nn-differentiate,nn-recompute{mode=full})" | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: shoal-opt %s --split-input-file --pass-pipeline="builtin.module(nn-differentiate,nn-recompute{mode=selective})" | FileCheck %s --check-prefixes=CHECK,SELECTIVE
// Neither common subexpressions nor patterns undo it.
// RUN: shoal-opt %s --split-input-file --pass-pipeline="builtin.module(nn-differentiate,nn-recompute{mode=full},canonicalize,cse)" | FileCheck %s --check-prefixes=CHECK,FULL

// Copies stand right before their reader in the backward pass and read what entered the layer, or the product that is kept;
// the last product of the layer, which no gradient reads, has none. Behind the layers everything is kept.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf64>
// CHECK: %[[H:.*]] = nn.matmul %[[X]], %{{.*}} {nn.layer = "a"}
// CHECK-NEXT: %[[T:.*]] = nn.tanh %[[H]] {nn.layer = "a"}
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[T]], %{{.*}} {nn.layer = "a"}
// CHECK-NEXT: %[[S:.*]] = nn.silu %[[Y]] {nn.layer = "b"}
// CHECK-NEXT: %[[Z:.*]] = nn.matmul %[[S]]
// CHECK-NEXT: %[[E:.*]] = nn.exp %[[Z]] : tensor
// CHECK-NEXT: nn.reduce
// CHECK-NOT: nn.recompute
// CHECK: nn.mul {{.*}}%[[E]]{{[ ,]}}
// CHECK-NOT: nn.recompute
// What enters layer b is kept for it, and with it the layer's own gradient.
// CHECK: %[[S2:.*]] = nn.silu %[[Y]] {nn.layer = "b", nn.recompute}
// CHECK-NEXT: nn.matmul %[[S2]], %{{.*}} {nn.layer = "b", transpose_a}
// CHECK: nn.sigmoid %[[Y]] {nn.layer = "b"}
// CHECK: nn.add {{.*}} {nn.layer = "b"}
// FULL: %[[H2:.*]] = nn.matmul %[[X]], %{{.*}} {nn.layer = "a", nn.recompute}
// FULL-NEXT: %[[T2:.*]] = nn.tanh %[[H2]] {nn.layer = "a", nn.recompute}
// SELECTIVE-NOT: nn.matmul {{.*}}nn.recompute
// SELECTIVE: %[[T2:.*]] = nn.tanh %[[H]] {nn.layer = "a", nn.recompute}
// CHECK-NEXT: nn.matmul %[[T2]], %{{.*}} {nn.layer = "a", transpose_a}
// CHECK: nn.mul %[[T2]], %[[T2]] {nn.layer = "a"}
// CHECK-NOT: nn.recompute
// CHECK: return
func.func @layers(%x: tensor<8x4xf64> {nn.input = "x"}, %w1: tensor<4x6xf64> {nn.param = #nn.param<"w1", init = zeros>},
    %w2: tensor<6x4xf64> {nn.param = #nn.param<"w2", init = zeros>}, %w3: tensor<4x2xf64> {nn.param = #nn.param<"w3", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %h = nn.matmul %x, %w1 {nn.layer = "a"} : (tensor<8x4xf64>, tensor<4x6xf64>) -> tensor<8x6xf64>
  %t = nn.tanh %h {nn.layer = "a"} : tensor<8x6xf64>
  %y = nn.matmul %t, %w2 {nn.layer = "a"} : (tensor<8x6xf64>, tensor<6x4xf64>) -> tensor<8x4xf64>
  %s = nn.silu %y {nn.layer = "b"} : tensor<8x4xf64>
  %z = nn.matmul %s, %w3 {nn.layer = "b"} : (tensor<8x4xf64>, tensor<4x2xf64>) -> tensor<8x2xf64>
  %e = nn.exp %z : tensor<8x2xf64>
  %loss = nn.reduce sum %e dims = [0, 1] : tensor<8x2xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// Attention is no product whose result is kept: with its softmax it is what selective recompute drops.
// CHECK-LABEL: func.func @attention
// CHECK: %[[O:.*]], %[[LSE:.*]] = nn.attention %[[Q:.*]], %[[K:.*]], %[[V:.*]] scale
// SELECTIVE: %[[O2:.*]], %[[LSE2:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] scale = 5.000000e-01 {nn.layer = "h", nn.recompute}
// FULL: %[[Q2:.*]] = nn.tensordot {{.*}} {nn.layer = "h", nn.recompute}
// FULL: %[[O2:.*]], %[[LSE2:.*]] = nn.attention %[[Q2]], %[[K]], %[[V]] scale = 5.000000e-01 {nn.layer = "h", nn.recompute}
// CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %[[K]], %[[V]], %[[O2]], %[[LSE2]] scale
func.func @attention(%x: tensor<2x3x8xf64> {nn.input = "x"}, %k: tensor<2x3x1x4xf64> {nn.input = "k"}, %v: tensor<2x3x1x4xf64> {nn.input = "v"},
    %w: tensor<8x1x2x4xf64> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f64> {nn.loss}) {
  %q = nn.tensordot %x, %w axes = 1 {nn.layer = "h"} : (tensor<2x3x8xf64>, tensor<8x1x2x4xf64>) -> tensor<2x3x1x2x4xf64>
  %o, %lse = nn.attention %q, %k, %v scale = 0.5 {nn.layer = "h"} : (tensor<2x3x1x2x4xf64>, tensor<2x3x1x4xf64>, tensor<2x3x1x4xf64>) -> tensor<2x3x1x2x4xf64>
  %t = nn.tanh %o {nn.layer = "h"} : tensor<2x3x1x2x4xf64>
  %loss = nn.reduce sum %t dims = [0, 1, 2, 3, 4] : tensor<2x3x1x2x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// What enters another layer is there, and with it all that its op makes: the log-sum-exp is no reason to run attention again.
// CHECK-LABEL: func.func @whole_op
// CHECK: %[[O:.*]], %[[LSE:.*]] = nn.attention
// CHECK-NOT: nn.recompute
// CHECK: nn.attention_grad {{.*}}, %[[O]], %[[LSE]] scale
func.func @whole_op(%x: tensor<2x3x1x2x4xf64> {nn.input = "x"}, %k: tensor<2x3x1x4xf64> {nn.input = "k"}, %v: tensor<2x3x1x4xf64> {nn.input = "v"},
    %w: tensor<1x1x4xf64> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f64> {nn.loss}) {
  %q = nn.mul %x, %w : (tensor<2x3x1x2x4xf64>, tensor<1x1x4xf64>) -> tensor<2x3x1x2x4xf64>
  %o, %lse = nn.attention %q, %k, %v scale = 0.5 {nn.layer = "h"} : (tensor<2x3x1x2x4xf64>, tensor<2x3x1x4xf64>, tensor<2x3x1x4xf64>) -> tensor<2x3x1x2x4xf64>
  %loss = nn.reduce sum %o dims = [0, 1, 2, 3, 4] : tensor<2x3x1x2x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// Weights are no activations: what is computed from them alone is there once, however many batches read it.
// CHECK-LABEL: func.func @weights
// CHECK: %[[C:.*]] = nn.tanh %{{.*}} {nn.layer = "h"}
// CHECK: nn.exp {{.*}} {nn.layer = "h", nn.recompute}
// CHECK-NOT: nn.tanh
// CHECK: return
func.func @weights(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f64> {nn.loss}) {
  %c = nn.tanh %w {nn.layer = "h"} : tensor<4x4xf64>
  %e = nn.exp %x {nn.layer = "h"} : tensor<8x4xf64>
  %y = nn.matmul %e, %c {nn.layer = "h"} : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %loss = nn.reduce sum %y dims = [0, 1] : tensor<8x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// The layer that makes the loss, a sum of its own divided by a count, has nothing to gain: its backward pass follows at once.
// CHECK-LABEL: func.func @head
// CHECK: nn.exp {{.*}} {nn.layer = "h", nn.recompute}
// CHECK-NOT: nn.layer = "head", nn.recompute
// CHECK: return
func.func @head(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f64> {nn.loss}) {
  %y = nn.matmul %x, %w {nn.layer = "h"} : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %e = nn.exp %y {nn.layer = "h"} : tensor<8x4xf64>
  %z = nn.matmul %e, %w {nn.layer = "h"} : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %t = nn.exp %z {nn.layer = "head"} : tensor<8x4xf64>
  %s = nn.reduce sum %t dims = [0, 1] {nn.layer = "head"} : tensor<8x4xf64> -> tensor<f64>
  %c = nn.constant dense<8.0> : tensor<f64>
  %loss = nn.div %s, %c : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// What enters a stage inside a layer is kept as what enters the layer is. What is of no stage, as a mask, is made again by
// each. Of a layer that makes the loss, only the stage that does keeps all.
// CHECK-LABEL: func.func @stages
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf64>
// CHECK: %[[H:.*]] = nn.matmul %[[X]], %{{.*}} {nn.layer = "a", pipe.stage = 0 : i64}
// CHECK: %[[G:.*]] = nn.mul {{.*}} {nn.layer = "a", pipe.stage = 0 : i64}
// CHECK: %[[Y:.*]] = nn.matmul %[[G]], %{{.*}} {nn.layer = "a", pipe.stage = 1 : i64}
// CHECK: nn.reduce
// CHECK-NOT: nn.recompute
// CHECK: nn.tanh {{.*}} {nn.layer = "b", nn.recompute, pipe.stage = 1 : i64}
// CHECK: nn.sigmoid %[[X]] {nn.layer = "a", nn.recompute}
// FULL: %[[Y2:.*]] = nn.matmul %[[G]], %{{.*}} {nn.layer = "a", nn.recompute, pipe.stage = 1 : i64}
// FULL-NEXT: nn.exp %[[Y2]] {nn.layer = "a", nn.recompute, pipe.stage = 1 : i64}
// FULL: nn.matmul %[[X]], %{{.*}} {nn.layer = "a", nn.recompute, pipe.stage = 0 : i64}
// SELECTIVE: nn.exp %[[Y]] {nn.layer = "a", nn.recompute, pipe.stage = 1 : i64}
// SELECTIVE: nn.tanh %[[H]] {nn.layer = "a", nn.recompute, pipe.stage = 0 : i64}
// CHECK-NOT: nn.sigmoid
// CHECK: return
func.func @stages(%x: tensor<8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = zeros>},
    %v: tensor<4x4xf64> {nn.param = #nn.param<"v", init = zeros>}, %u: tensor<4x4xf64> {nn.param = #nn.param<"u", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %m = nn.sigmoid %x {nn.layer = "a"} : tensor<8x4xf64>
  %h = nn.matmul %x, %w {nn.layer = "a", pipe.stage = 0 : i64} : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %t = nn.tanh %h {nn.layer = "a", pipe.stage = 0 : i64} : tensor<8x4xf64>
  %g = nn.mul %t, %m {nn.layer = "a", pipe.stage = 0 : i64} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
  %y = nn.matmul %g, %v {nn.layer = "a", pipe.stage = 1 : i64} : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %e = nn.exp %y {nn.layer = "a", pipe.stage = 1 : i64} : tensor<8x4xf64>
  %f = nn.mul %e, %m {nn.layer = "a", pipe.stage = 1 : i64} : (tensor<8x4xf64>, tensor<8x4xf64>) -> tensor<8x4xf64>
  %b = nn.tanh %f {nn.layer = "b", pipe.stage = 1 : i64} : tensor<8x4xf64>
  %c = nn.tanh %b {nn.layer = "b", pipe.stage = 1 : i64} : tensor<8x4xf64>
  %z = nn.matmul %c, %u {nn.layer = "b", pipe.stage = 2 : i64} : (tensor<8x4xf64>, tensor<4x4xf64>) -> tensor<8x4xf64>
  %k = nn.exp %z {nn.layer = "b", pipe.stage = 2 : i64} : tensor<8x4xf64>
  %loss = nn.reduce sum %k dims = [0, 1] {nn.layer = "b", pipe.stage = 2 : i64} : tensor<8x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
