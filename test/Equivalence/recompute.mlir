// A step that computes activations again is what one device does without: norm, attention, dropout and activation
// function in two layers, over rows, heads and features, the sequence sharded between them; sizes that do not divide.

// On one device every number is the same, to the last bit: losses, gradients, masks of dropout, updates over three steps.
// DEFINE: %{plan} =
// DEFINE: %{interpret} = sed 's/MESH/"data"=1, "tensor"=1/' %s | shoal-opt --shoal-global="data-axes=data model-axes=tensor optimizer=adam lr=0.1 %{plan}" \
// DEFINE:   --interpret="steps=3 elements=100" -o /dev/null
// RUN: %{interpret} > %t.none
// REDEFINE: %{plan} = recompute=selective
// RUN: %{interpret} > %t.selective
// REDEFINE: %{plan} = recompute=full
// RUN: %{interpret} > %t.full
// RUN: diff %t.none %t.selective && diff %t.none %t.full
// RUN: FileCheck %s --check-prefix=RESULTS --input-file=%t.none
// RESULTS: step 2 result 0 (loss)

// Under plans, value by value.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=adam lr=0.1 %{plan}" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=2" -o %t.local.mlir
// REDEFINE: %{mesh} = "data"=2, "tensor"=1
// REDEFINE: %{plan} = recompute=full
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=2
// REDEFINE: %{plan} = recompute=full tensor-parallel=true
// RUN: %{check}
// REDEFINE: %{plan} = recompute=selective tensor-parallel=true
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3
// REDEFINE: %{plan} = recompute=full tensor-parallel=true sequence-parallel=true
// RUN: %{check}
// REDEFINE: %{plan} = recompute=selective tensor-parallel=true sequence-parallel=true
// RUN: %{check}

// The sequence is gathered once for each product of the backward pass: what a copied norm makes is gathered for the copied
// product and the weight's gradient together, so there is nothing to fetch again.
// RUN: FileCheck %s --input-file=%t.local.mlir
// CHECK: nn.dropout {{.*}} id = 1 {{.*}} nn.recompute
// CHECK-NOT: dist.refetch
dist.mesh @mesh <[MESH]>
func.func @blocks(
    %x: tensor<3x5x6xf64> {nn.input = "x"},
    %y: tensor<3x5x6xf64> {nn.input = "y"},
    %g0: tensor<6xf64> {nn.param = #nn.param<"g0", init = ones>},
    %b0: tensor<6xf64> {nn.param = #nn.param<"b0", init = zeros>},
    %wqkv0: tensor<6x3x2x3xf64> {nn.param = #nn.param<"wqkv0", init = normal(0.0, 0.3)>},
    %wo0: tensor<2x1x3x6xf64> {nn.param = #nn.param<"wo0", init = normal(0.0, 0.3)>},
    %w10: tensor<6x7xf64> {nn.param = #nn.param<"w10", init = normal(0.0, 0.3)>},
    %w20: tensor<7x6xf64> {nn.param = #nn.param<"w20", init = normal(0.0, 0.3)>},
    %g1: tensor<6xf64> {nn.param = #nn.param<"g1", init = ones>},
    %b1: tensor<6xf64> {nn.param = #nn.param<"b1", init = zeros>},
    %wqkv1: tensor<6x3x2x3xf64> {nn.param = #nn.param<"wqkv1", init = normal(0.0, 0.3)>},
    %wo1: tensor<2x1x3x6xf64> {nn.param = #nn.param<"wo1", init = normal(0.0, 0.3)>},
    %w11: tensor<6x7xf64> {nn.param = #nn.param<"w11", init = normal(0.0, 0.3)>},
    %w21: tensor<7x6xf64> {nn.param = #nn.param<"w21", init = normal(0.0, 0.3)>})
    -> (tensor<f64> {nn.loss}) {
  %n0, %mean0, %rstd0 = nn.layer_norm %x, %g0, %b0 eps = 1.0e-5 {nn.layer = "h.0"} : tensor<3x5x6xf64>, tensor<6xf64>
  %qkv0 = nn.tensordot %n0, %wqkv0 axes = 1 {nn.layer = "h.0"} : (tensor<3x5x6xf64>, tensor<6x3x2x3xf64>) -> tensor<3x5x3x2x3xf64>
  %q10 = nn.slice %qkv0 dim = 2 start = 0 {nn.layer = "h.0"} : tensor<3x5x3x2x3xf64> -> tensor<3x5x1x2x3xf64>
  %k10 = nn.slice %qkv0 dim = 2 start = 1 {nn.layer = "h.0"} : tensor<3x5x3x2x3xf64> -> tensor<3x5x1x2x3xf64>
  %v10 = nn.slice %qkv0 dim = 2 start = 2 {nn.layer = "h.0"} : tensor<3x5x3x2x3xf64> -> tensor<3x5x1x2x3xf64>
  %q0 = nn.reshape %q10 {nn.layer = "h.0"} : tensor<3x5x1x2x3xf64> -> tensor<3x5x2x1x3xf64>
  %k0 = nn.reshape %k10 {nn.layer = "h.0"} : tensor<3x5x1x2x3xf64> -> tensor<3x5x2x3xf64>
  %v0 = nn.reshape %v10 {nn.layer = "h.0"} : tensor<3x5x1x2x3xf64> -> tensor<3x5x2x3xf64>
  %a0, %lse0 = nn.attention %q0, %k0, %v0 causal scale = 0.5 {nn.layer = "h.0"} : (tensor<3x5x2x1x3xf64>, tensor<3x5x2x3xf64>, tensor<3x5x2x3xf64>) -> tensor<3x5x2x1x3xf64>
  %o0 = nn.tensordot %a0, %wo0 axes = 3 {nn.layer = "h.0"} : (tensor<3x5x2x1x3xf64>, tensor<2x1x3x6xf64>) -> tensor<3x5x6xf64>
  %d0 = nn.dropout %o0 rate = 0.25 id = 0 {nn.layer = "h.0"} : tensor<3x5x6xf64>
  %r0 = nn.add %x, %d0 {nn.layer = "h.0"} : (tensor<3x5x6xf64>, tensor<3x5x6xf64>) -> tensor<3x5x6xf64>
  %h0 = nn.matmul %r0, %w10 {nn.layer = "h.0"} : (tensor<3x5x6xf64>, tensor<6x7xf64>) -> tensor<3x5x7xf64>
  %e0 = nn.gelu tanh %h0 {nn.layer = "h.0"} : tensor<3x5x7xf64>
  %f0 = nn.dropout %e0 rate = 0.25 id = 1 {nn.layer = "h.0"} : tensor<3x5x7xf64>
  %p0 = nn.matmul %f0, %w20 {nn.layer = "h.0"} : (tensor<3x5x7xf64>, tensor<7x6xf64>) -> tensor<3x5x6xf64>
  %s0 = nn.add %r0, %p0 {nn.layer = "h.0"} : (tensor<3x5x6xf64>, tensor<3x5x6xf64>) -> tensor<3x5x6xf64>
  %n1, %mean1, %rstd1 = nn.layer_norm %s0, %g1, %b1 eps = 1.0e-5 {nn.layer = "h.1"} : tensor<3x5x6xf64>, tensor<6xf64>
  %qkv1 = nn.tensordot %n1, %wqkv1 axes = 1 {nn.layer = "h.1"} : (tensor<3x5x6xf64>, tensor<6x3x2x3xf64>) -> tensor<3x5x3x2x3xf64>
  %q11 = nn.slice %qkv1 dim = 2 start = 0 {nn.layer = "h.1"} : tensor<3x5x3x2x3xf64> -> tensor<3x5x1x2x3xf64>
  %k11 = nn.slice %qkv1 dim = 2 start = 1 {nn.layer = "h.1"} : tensor<3x5x3x2x3xf64> -> tensor<3x5x1x2x3xf64>
  %v11 = nn.slice %qkv1 dim = 2 start = 2 {nn.layer = "h.1"} : tensor<3x5x3x2x3xf64> -> tensor<3x5x1x2x3xf64>
  %q1 = nn.reshape %q11 {nn.layer = "h.1"} : tensor<3x5x1x2x3xf64> -> tensor<3x5x2x1x3xf64>
  %k1 = nn.reshape %k11 {nn.layer = "h.1"} : tensor<3x5x1x2x3xf64> -> tensor<3x5x2x3xf64>
  %v1 = nn.reshape %v11 {nn.layer = "h.1"} : tensor<3x5x1x2x3xf64> -> tensor<3x5x2x3xf64>
  %a1, %lse1 = nn.attention %q1, %k1, %v1 causal scale = 0.5 {nn.layer = "h.1"} : (tensor<3x5x2x1x3xf64>, tensor<3x5x2x3xf64>, tensor<3x5x2x3xf64>) -> tensor<3x5x2x1x3xf64>
  %o1 = nn.tensordot %a1, %wo1 axes = 3 {nn.layer = "h.1"} : (tensor<3x5x2x1x3xf64>, tensor<2x1x3x6xf64>) -> tensor<3x5x6xf64>
  %d1 = nn.dropout %o1 rate = 0.25 id = 2 {nn.layer = "h.1"} : tensor<3x5x6xf64>
  %r1 = nn.add %s0, %d1 {nn.layer = "h.1"} : (tensor<3x5x6xf64>, tensor<3x5x6xf64>) -> tensor<3x5x6xf64>
  %h1 = nn.matmul %r1, %w11 {nn.layer = "h.1"} : (tensor<3x5x6xf64>, tensor<6x7xf64>) -> tensor<3x5x7xf64>
  %e1 = nn.gelu tanh %h1 {nn.layer = "h.1"} : tensor<3x5x7xf64>
  %f1 = nn.dropout %e1 rate = 0.25 id = 3 {nn.layer = "h.1"} : tensor<3x5x7xf64>
  %p1 = nn.matmul %f1, %w21 {nn.layer = "h.1"} : (tensor<3x5x7xf64>, tensor<7x6xf64>) -> tensor<3x5x6xf64>
  %s1 = nn.add %r1, %p1 {nn.layer = "h.1"} : (tensor<3x5x6xf64>, tensor<3x5x6xf64>) -> tensor<3x5x6xf64>
  %loss = nn.mse_loss mean %s1, %y : (tensor<3x5x6xf64>, tensor<3x5x6xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
