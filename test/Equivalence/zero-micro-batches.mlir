// ZeRO-2 and ZeRO-3 in micro-batches: gradients are reduced to shards in each, and summed up as shards; parameters are
// gathered in each, once for forward and once for backward. ZeRO-1 reduces once, behind them.
// DEFINE: %{stage} =
// DEFINE: %{devices} =
// DEFINE: %{bucket} = 25
// DEFINE: %{check} = sed 's/DEVICES/%{devices}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --dist-number --dist-data-parallel --dist-zero=stage=%{stage} --dist-close-arguments --dist-propagate -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data bucket-mb=%{bucket}" -o %t.local.mlir \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir --dist-expand-collectives --canonicalize --cse \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir

// REDEFINE: %{stage} = 1
// REDEFINE: %{devices} = 2
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ONE < %t.local.mlir
// REDEFINE: %{stage} = 2
// REDEFINE: %{devices} = 3
// RUN: %{check}
// REDEFINE: %{stage} = 3
// REDEFINE: %{devices} = 2
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=THREE < %t.local.mlir
// Buckets that cut tensors.
// REDEFINE: %{bucket} = 0.0001
// RUN: %{check}
// REDEFINE: %{stage} = 2
// RUN: %{check}
// REDEFINE: %{stage} = 1
// RUN: %{check}

// The loops are unrolled here: two micro-batches.
// ONE-COUNT-1: dist.reduce_scatter
// ONE-NOT: dist.reduce_scatter
// w1 is not read backward, w2 is.
// THREE-COUNT-3: dist.all_gather
// THREE: dist.reduce_scatter
// THREE: dist.all_gather
// THREE: dist.reduce_scatter

dist.mesh @mesh <["data"=DEVICES]>
func.func @step(
    %x: tensor<12x5xf64> {nn.input = "x"}, %y: tensor<12x3xf64> {nn.input = "y"},
    %w1: tensor<5x7xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>},
    %w2: tensor<7x3xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>},
    %v1: tensor<5x7xf64> {nn.state = #nn.state<"w1.velocity", of = "w1", init = 0.0>},
    %v2: tensor<7x3xf64> {nn.state = #nn.state<"w2.velocity", of = "w2", init = 0.0>})
    -> (tensor<f64> {nn.loss}, tensor<5x7xf64> {nn.grad = "w1"}, tensor<7x3xf64> {nn.grad = "w2"},
        tensor<5x7xf64> {nn.updates = "w1"}, tensor<5x7xf64> {nn.updates = "w1.velocity"},
        tensor<7x3xf64> {nn.updates = "w2"}, tensor<7x3xf64> {nn.updates = "w2.velocity"}) {
  %loss, %g1, %g2 = dist.accumulate(%x, %y) microbatches = 2 {
  ^bb0(%xm: tensor<6x5xf64>, %ym: tensor<6x3xf64>):
    %h = nn.matmul %xm, %w1 {nn.layer = "a"} : (tensor<6x5xf64>, tensor<5x7xf64>) -> tensor<6x7xf64>
    %t = nn.tanh %h {nn.layer = "a"} : tensor<6x7xf64>
    %z = nn.matmul %t, %w2 {nn.layer = "b"} : (tensor<6x7xf64>, tensor<7x3xf64>) -> tensor<6x3xf64>
    %d = nn.mul %z, %ym : (tensor<6x3xf64>, tensor<6x3xf64>) -> tensor<6x3xf64>
    %l = nn.reduce sum %d dims = [0, 1] : tensor<6x3xf64> -> tensor<f64>
    %dw2 = nn.matmul %t, %ym {transpose_a, nn.layer = "b"} : (tensor<6x7xf64>, tensor<6x3xf64>) -> tensor<7x3xf64>
    %dt = nn.matmul %ym, %w2 {transpose_b, nn.layer = "b"} : (tensor<6x3xf64>, tensor<7x3xf64>) -> tensor<6x7xf64>
    %tt = nn.mul %t, %t {nn.layer = "a"} : (tensor<6x7xf64>, tensor<6x7xf64>) -> tensor<6x7xf64>
    %dtt = nn.mul %dt, %tt {nn.layer = "a"} : (tensor<6x7xf64>, tensor<6x7xf64>) -> tensor<6x7xf64>
    %dh = nn.sub %dt, %dtt {nn.layer = "a"} : (tensor<6x7xf64>, tensor<6x7xf64>) -> tensor<6x7xf64>
    %dw1 = nn.matmul %xm, %dh {transpose_a, nn.layer = "a"} : (tensor<6x5xf64>, tensor<6x7xf64>) -> tensor<5x7xf64>
    dist.yield %l, %dw1, %dw2 : tensor<f64>, tensor<5x7xf64>, tensor<7x3xf64>
  } : (tensor<12x5xf64>, tensor<12x3xf64>) -> (tensor<f64>, tensor<5x7xf64>, tensor<7x3xf64>)
  %lr = nn.constant dense<0.01> : tensor<f64>
  %n1, %nv1 = nn.momentum_update %w1, %g1, %v1 lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<5x7xf64>, tensor<f64>
  %n2, %nv2 = nn.momentum_update %w2, %g2, %v2 lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<7x3xf64>, tensor<f64>
  return %loss, %g1, %g2, %n1, %nv1, %n2, %nv2 : tensor<f64>, tensor<5x7xf64>, tensor<7x3xf64>, tensor<5x7xf64>, tensor<5x7xf64>, tensor<7x3xf64>, tensor<7x3xf64>
}
