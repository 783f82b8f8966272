// Data parallelism over tensor parallelism: tensor axes are partitioned first, gradients are packed, then the data axis.
// The hidden size does not divide; the row-parallel bias is added once; norms count each element once.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=adam clip-grad-norm=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=2, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=4
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=2, "data"=4
// RUN: %{check}

// Parameters, gradients and moments lie alike: nothing is gathered.
// RUN: FileCheck %s --input-file=%t.local.mlir
// CHECK-LABEL: func.func @mlp
// CHECK-NOT: dist.all_gather

dist.mesh @mesh <[MESH]>
func.func @mlp(
    %x:  tensor<10x6xf64> {nn.input = "x"},
    %y:  tensor<10x4xf64> {nn.input = "y"},
    %w1: tensor<6x11xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %b1: tensor<11xf64> {nn.param = #nn.param<"b1", init = uniform(-0.1, 0.1)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %w2: tensor<11x4xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %b2: tensor<4xf64> {nn.param = #nn.param<"b2", init = uniform(-0.1, 0.1)>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf64>, tensor<6x11xf64>) -> tensor<10x11xf64>
  %1 = nn.add %0, %b1 : (tensor<10x11xf64>, tensor<11xf64>) -> tensor<10x11xf64>
  %2 = nn.tanh %1 : tensor<10x11xf64>
  %3 = nn.matmul %2, %w2 : (tensor<10x11xf64>, tensor<11x4xf64>) -> tensor<10x4xf64>
  %4 = nn.add %3, %b2 : (tensor<10x4xf64>, tensor<4xf64>) -> tensor<10x4xf64>
  %loss = nn.mse_loss mean %4, %y : (tensor<10x4xf64>, tensor<10x4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
