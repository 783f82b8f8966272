// Training under data parallelism does what one device does, whatever divides: the batch has 30 rows (and every other
// one is short), 3 rows stand against 8 ranks below, momentum and clipping read reduced gradients.
// DEFINE: %{mesh} =
// DEFINE: %{optimizer} = optimizer=sgd
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data %{optimizer}" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data bucket-mb=0.0005" \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir --dist-expand-collectives --canonicalize --cse \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=4
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=6
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=8
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=4], device_ids=[3, 1, 0, 2
// RUN: %{check}
// REDEFINE: %{optimizer} = optimizer=sgd momentum=0.9 clip-grad-norm=0.1
// RUN: %{check}
// REDEFINE: %{optimizer} = optimizer=adamw weight-decay=0.1 grad-norm=true
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @mlp(
    %x:  tensor<30x7xf64> {nn.input = "x"},
    %y:  tensor<30xi64> {nn.input = "y"},
    %w1: tensor<7x13xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>},
    %b1: tensor<13xf64> {nn.param = #nn.param<"b1", init = uniform(-0.1, 0.1)>},
    %w2: tensor<13x5xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>},
    %b2: tensor<5xf64> {nn.param = #nn.param<"b2", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<30x7xf64>, tensor<7x13xf64>) -> tensor<30x13xf64>
  %1 = nn.add %0, %b1 : (tensor<30x13xf64>, tensor<13xf64>) -> tensor<30x13xf64>
  %2 = nn.relu %1 : tensor<30x13xf64>
  %3 = nn.matmul %2, %w2 : (tensor<30x13xf64>, tensor<13x5xf64>) -> tensor<30x5xf64>
  %4 = nn.add %3, %b2 : (tensor<30x5xf64>, tensor<5xf64>) -> tensor<30x5xf64>
  %loss, %lse = nn.cross_entropy mean %4, %y : (tensor<30x5xf64>, tensor<30xi64>) -> tensor<f64>
  return %loss : tensor<f64>
}
