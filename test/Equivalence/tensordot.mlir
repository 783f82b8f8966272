// Heads are dimensions: 6 heads over 4 ranks, 2 groups of 3 heads over 3 (of groups and of heads in a group), inner
// dimensions sharded and padded, and both factors of a tensor axis that is split.
// DEFINE: %{mesh} =
// DEFINE: %{groups} =
// DEFINE: %{heads} =
// DEFINE: %{check} = sed -e 's/MESH/%{mesh}/' -e 's/GROUPS/%{groups}/' -e 's/HEADS/%{heads}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=t,u optimizer=adam clip-grad-norm=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=t,u" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// Of the heads nothing is gathered, whatever divides: what is summed over them is reduced, here over t.
// REDEFINE: %{mesh} = "data"=1, "t"=4, "u"=1
// REDEFINE: %{groups} = {"t"}
// REDEFINE: %{heads} = {}
// RUN: %{check} && FileCheck %s --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=2, "t"=3, "u"=1
// RUN: %{check} && FileCheck %s --input-file=%t.local.mlir
// REDEFINE: %{groups} = {}
// REDEFINE: %{heads} = {"t"}
// RUN: %{check} && FileCheck %s --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=1, "t"=4, "u"=1
// RUN: %{check} && FileCheck %s --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=2, "t"=2, "u"=2
// REDEFINE: %{groups} = {"t"}
// REDEFINE: %{heads} = {"u"}
// RUN: %{check} && FileCheck %s --input-file=%t.local.mlir

// CHECK-LABEL: func.func @heads
// CHECK-NOT: dist.all_gather
// CHECK-NOT: dist.all_to_all

dist.mesh @mesh <[MESH]>
func.func @heads(
    %x:  tensor<4x5x7xf64> {nn.input = "x"},
    %y:  tensor<4x5x7xf64> {nn.input = "y"},
    %wq: tensor<7x2x3x4xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{}, GROUPS, HEADS, {}]>},
    %bq: tensor<2x3x4xf64> {nn.param = #nn.param<"bq", init = uniform(-0.1, 0.1)>, dist.sharding = #dist.sharding<@mesh, [GROUPS, HEADS, {}]>},
    %wk: tensor<2x4x7xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [GROUPS, {}, {}]>},
    %wo: tensor<7x2x3x4xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{}, GROUPS, HEADS, {}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.tensordot %x, %wq axes = 1 : (tensor<4x5x7xf64>, tensor<7x2x3x4xf64>) -> tensor<4x5x2x3x4xf64>
  %1 = nn.add %0, %bq : (tensor<4x5x2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<4x5x2x3x4xf64>
  // A key for each group, that all its heads see.
  %2 = nn.tensordot %x, %wk axes = 1 {transpose_b} : (tensor<4x5x7xf64>, tensor<2x4x7xf64>) -> tensor<4x5x2x4xf64>
  %3 = nn.reshape %2 : tensor<4x5x2x4xf64> -> tensor<4x5x2x1x4xf64>
  %4 = nn.mul %1, %3 : (tensor<4x5x2x3x4xf64>, tensor<4x5x2x1x4xf64>) -> tensor<4x5x2x3x4xf64>
  // exp(0) = 1 in padded heads would count, were they not masked where they are summed over.
  %5 = nn.exp %4 : tensor<4x5x2x3x4xf64>
  %6 = nn.tensordot %5, %wo axes = 3 {transpose_b} : (tensor<4x5x2x3x4xf64>, tensor<7x2x3x4xf64>) -> tensor<4x5x7xf64>
  %7 = nn.add %6, %x : (tensor<4x5x7xf64>, tensor<4x5x7xf64>) -> tensor<4x5x7xf64>
  %loss = nn.mse_loss mean %7, %y : (tensor<4x5x7xf64>, tensor<4x5x7xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
