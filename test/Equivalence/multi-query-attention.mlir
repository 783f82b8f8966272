// One key/value head and 4 tensor ranks: k and v are whole everywhere, and what flows back into them is summed over the
// ranks' query heads (4, and 6, which 4 does not divide), once, also for the norm. With the products around it: heads are dimensions of the weights.
// DEFINE: %{mesh} =
// DEFINE: %{heads} =
// DEFINE: %{check} = sed -e 's/MESH/%{mesh}/' -e 's/GROUPS/%{heads}/g' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=adam clip-grad-norm=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "tensor"=4
// REDEFINE: %{heads} = 6
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=4
// REDEFINE: %{heads} = 4
// RUN: %{check}
// RUN: FileCheck %s --input-file=%t.local.mlir

// The output is summed forward; backward what reaches x, and the gradients of wk and wv. Nothing is gathered.
// CHECK-LABEL: func.func @model
// CHECK-NOT: all_gather
// CHECK: nn.attention {{.*}} -> tensor<2x5x1x1x3xf64>
// CHECK-NOT: all_gather
// CHECK: dist.all_reduce {"tensor"} sum
// CHECK: nn.attention_grad {{.*}} -> (tensor<2x5x1x1x3xf64>, tensor<2x5x1x3xf64>, tensor<2x5x1x3xf64>)
// CHECK: dist.all_reduce {"tensor"} sum
// CHECK-NOT: all_gather

dist.mesh @mesh <[MESH]>

func.func @model(
    %x: tensor<2x5x4xf64> {nn.input = "x"}, %y: tensor<2x5x4xf64> {nn.input = "y"},
    %w0: tensor<4xf64> {nn.param = #nn.param<"w0", init = uniform(-1.0, 1.0)>},
    %wq: tensor<4x1xGROUPSx3xf64> {nn.param = #nn.param<"wq", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tensor"}, {}]>},
    %wk: tensor<4x1x3xf64> {nn.param = #nn.param<"wk", init = uniform(-1.0, 1.0)>},
    %wv: tensor<4x1x3xf64> {nn.param = #nn.param<"wv", init = uniform(-1.0, 1.0)>},
    %wo: tensor<1xGROUPSx3x4xf64> {nn.param = #nn.param<"wo", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}, {}, {}]>})
    -> (tensor<f64> {nn.loss}) {
  %h = nn.mul %x, %w0 : (tensor<2x5x4xf64>, tensor<4xf64>) -> tensor<2x5x4xf64>
  %q = nn.tensordot %h, %wq axes = 1 : (tensor<2x5x4xf64>, tensor<4x1xGROUPSx3xf64>) -> tensor<2x5x1xGROUPSx3xf64>
  %k = nn.tensordot %h, %wk axes = 1 : (tensor<2x5x4xf64>, tensor<4x1x3xf64>) -> tensor<2x5x1x3xf64>
  %v = nn.tensordot %h, %wv axes = 1 : (tensor<2x5x4xf64>, tensor<4x1x3xf64>) -> tensor<2x5x1x3xf64>
  %o, %lse = nn.attention %q, %k, %v causal scale = 0.5 : (tensor<2x5x1xGROUPSx3xf64>, tensor<2x5x1x3xf64>, tensor<2x5x1x3xf64>) -> tensor<2x5x1xGROUPSx3xf64>
  %p = nn.tensordot %o, %wo axes = 3 : (tensor<2x5x1xGROUPSx3xf64>, tensor<1xGROUPSx3x4xf64>) -> tensor<2x5x4xf64>
  %r = nn.add %h, %p : (tensor<2x5x4xf64>, tensor<2x5x4xf64>) -> tensor<2x5x4xf64>
  %loss = nn.mse_loss mean %r, %y : (tensor<2x5x4xf64>, tensor<2x5x4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
