// The stages of ZeRO do what one device does, whatever divides: 5 members of odd sizes over 2, 3 and 4 devices, in one
// bucket and in several that cut tensors, down to one element for each device, with clipping, momentum, decay of matrices only,
// and without state.
// DEFINE: %{mesh} =
// DEFINE: %{plan} =
// DEFINE: %{optimizer} = optimizer=adamw weight-decay=0.1 decay=matrices clip-grad-norm=0.1
// DEFINE: %{bucket} = 0.0005
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data %{optimizer} %{plan}" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data bucket-mb=%{bucket}" \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir --dist-expand-collectives --canonicalize --cse \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=2
// REDEFINE: %{plan} = zero=1
// RUN: %{check}
// REDEFINE: %{plan} = zero=2
// RUN: %{check}
// REDEFINE: %{plan} = zero=3
// RUN: %{check}
// REDEFINE: %{bucket} = 0.00001
// RUN: %{check}
// REDEFINE: %{plan} = zero=1
// RUN: %{check}
// REDEFINE: %{plan} = zero=2 microbatches=2
// RUN: %{check}
// REDEFINE: %{plan} = zero=1 microbatches=2
// RUN: %{check}
// REDEFINE: %{bucket} = 0.0001
// REDEFINE: %{plan} = zero=3 microbatches=2
// REDEFINE: %{mesh} = "data"=3
// RUN: %{check}
// REDEFINE: %{optimizer} = optimizer=sgd momentum=0.9 grad-norm=true
// RUN: %{check}
// REDEFINE: %{plan} = zero=1
// REDEFINE: %{mesh} = "data"=4], device_ids=[3, 1, 0, 2
// RUN: %{check}
// REDEFINE: %{optimizer} = optimizer=sgd
// RUN: %{check}
// REDEFINE: %{plan} = zero=3
// RUN: %{check}
// One device has nothing to shard.
// REDEFINE: %{mesh} = "data"=1
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @mlp(
    %x:  tensor<30x7xf64> {nn.input = "x"},
    %y:  tensor<30xi64> {nn.input = "y"},
    %w1: tensor<7x13xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>},
    %b1: tensor<13xf64> {nn.param = #nn.param<"b1", init = uniform(-0.1, 0.1)>},
    %w2: tensor<13x5xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>},
    %b2: tensor<5xf64> {nn.param = #nn.param<"b2", init = zeros>},
    %s:  tensor<f64> {nn.param = #nn.param<"s", init = ones>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 {nn.layer = "h.0"} : (tensor<30x7xf64>, tensor<7x13xf64>) -> tensor<30x13xf64>
  %1 = nn.add %0, %b1 {nn.layer = "h.0"} : (tensor<30x13xf64>, tensor<13xf64>) -> tensor<30x13xf64>
  %2 = nn.relu %1 {nn.layer = "h.0"} : tensor<30x13xf64>
  %3 = nn.matmul %2, %w2 {nn.layer = "h.1"} : (tensor<30x13xf64>, tensor<13x5xf64>) -> tensor<30x5xf64>
  %4 = nn.add %3, %b2 {nn.layer = "h.1"} : (tensor<30x5xf64>, tensor<5xf64>) -> tensor<30x5xf64>
  // The first weight once more, in another shape: a table that two ends of the model share.
  %t = nn.reshape %w1 : tensor<7x13xf64> -> tensor<13x7xf64>
  %5 = nn.matmul %2, %t : (tensor<30x13xf64>, tensor<13x7xf64>) -> tensor<30x7xf64>
  %6 = nn.reduce sum %5 dims = [1] {keep_dims} : tensor<30x7xf64> -> tensor<30x1xf64>
  %7 = nn.mul %4, %s : (tensor<30x5xf64>, tensor<f64>) -> tensor<30x5xf64>
  %8 = nn.mul %7, %6 : (tensor<30x5xf64>, tensor<30x1xf64>) -> tensor<30x5xf64>
  %loss, %lse = nn.cross_entropy mean %8, %y : (tensor<30x5xf64>, tensor<30xi64>) -> tensor<f64>
  return %loss : tensor<f64>
}
