// Adam without epsilon divides 0 by 0 where gradients have always been 0, so in the padding of a bucket: that stays zeros.
// DEFINE: %{mesh} =
// DEFINE: %{stage} =
// DEFINE: %{eps} = 0
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data optimizer=adamw eps=%{eps} weight-decay=0.1 clip-grad-norm=0.1 zero=%{stage}" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data bucket-mb=0.0001" \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir && FileCheck %s --input-file=%t.local.mlir

// REDEFINE: %{mesh} = "data"=2
// REDEFINE: %{stage} = 1
// RUN: %{check} --check-prefix=MASK
// REDEFINE: %{mesh} = "data"=4
// REDEFINE: %{stage} = 2
// RUN: %{check} --check-prefix=MASK
// REDEFINE: %{stage} = 3
// RUN: %{check} --check-prefix=MASK
// With an epsilon, or where nothing is padded, nothing is masked.
// REDEFINE: %{eps} = 1e-8
// RUN: %{check} --check-prefix=NONE
// REDEFINE: %{eps} = 0
// REDEFINE: %{mesh} = "data"=5
// RUN: %{check} --check-prefix=NONE
// MASK: nn.adam_update
// MASK: nn.mask
// NONE: nn.adam_update
// NONE-NOT: nn.mask

dist.mesh @mesh <[MESH]>
func.func @affine(
    %x:  tensor<20x7xf64> {nn.input = "x"},
    %y:  tensor<20x5xf64> {nn.input = "y"},
    %w: tensor<7x5xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>},
    %b: tensor<5xf64> {nn.param = #nn.param<"b", init = uniform(-0.1, 0.1)>},
    %s: tensor<5xf64> {nn.param = #nn.param<"s", init = ones>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w {nn.layer = "h.0"} : (tensor<20x7xf64>, tensor<7x5xf64>) -> tensor<20x5xf64>
  %1 = nn.add %0, %b {nn.layer = "h.0"} : (tensor<20x5xf64>, tensor<5xf64>) -> tensor<20x5xf64>
  %2 = nn.mul %1, %s {nn.layer = "h.0"} : (tensor<20x5xf64>, tensor<5xf64>) -> tensor<20x5xf64>
  %l = nn.mse_loss mean %2, %y : (tensor<20x5xf64>, tensor<20x5xf64>) -> tensor<f64>
  return %l : tensor<f64>
}
