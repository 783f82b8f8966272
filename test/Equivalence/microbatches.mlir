// A step in micro-batches is the step: its dropout masks, its counts, its loss and its gradients, also where they do not divide
// the rows, where a batch is short and where ranks share a micro-batch's rows. A constant with a value for each row is split with them.
// DEFINE: %{mesh} = "data"=1
// DEFINE: %{count} = 1
// DEFINE: %{axes} = data-axes=data
// DEFINE: %{step} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --pass-pipeline='builtin.module(shoal-global{%{axes} microbatches=%{count} lr=0.5})' -o %t.global.mlir
// DEFINE: %{same} = shoal-opt %t.global.mlir --interpret -o /dev/null > %t.result && diff %t.result %t.whole
// DEFINE: %{check} = shoal-opt %t.global.mlir --pass-pipeline='builtin.module(shoal-local{%{axes}})' -o %t.local.mlir && \
// DEFINE:   shoal-opt %t.local.mlir --dist-expand-collectives --dist-verify-plan=reference=%t.global.mlir -o /dev/null

// RUN: sed 's/MESH/%{mesh}/' %s > %t.mlir
// RUN: shoal-opt %t.mlir --pass-pipeline='builtin.module(shoal-global{%{axes} lr=0.5})' -o %t.global.mlir
// RUN: shoal-opt %t.global.mlir --interpret -o /dev/null > %t.whole
// RUN: FileCheck %s --input-file=%t.whole
// CHECK: (gradient of w): tensor<4xf64> sum {{-?[1-9]}}
// REDEFINE: %{count} = 3
// RUN: %{step}
// RUN: %{same}
// REDEFINE: %{count} = 12
// RUN: %{step}
// RUN: %{same}
// REDEFINE: %{mesh} = "data"=2
// REDEFINE: %{count} = 5
// RUN: %{step}
// RUN: %{same}
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3
// REDEFINE: %{count} = 2
// RUN: %{step}
// RUN: %{same}
// RUN: %{check}

dist.mesh @mesh <[MESH]>
// Whole numbers, so that no order of the sum rounds.
func.func @step(%n: tensor<12x4xi64> {nn.input = "n"}, %w: tensor<4xf64> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<f64> {nn.loss}) {
  %0 = nn.cast %n : tensor<12x4xi64> -> tensor<12x4xf64>
  %1 = nn.dropout %0 rate = 0.5 id = 0 : tensor<12x4xf64>
  %2 = nn.transpose %1 [1, 0] : tensor<12x4xf64> -> tensor<4x12xf64>
  %3 = nn.dropout %2 rate = 0.5 id = 1 : tensor<4x12xf64>
  %4 = nn.transpose %3 [1, 0] : tensor<4x12xf64> -> tensor<12x4xf64>
  %c = nn.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], [9.0], [10.0], [11.0], [12.0]]> : tensor<12x1xf64>
  %r = nn.mul %4, %c : (tensor<12x4xf64>, tensor<12x1xf64>) -> tensor<12x4xf64>
  %5 = nn.mul %r, %w : (tensor<12x4xf64>, tensor<4xf64>) -> tensor<12x4xf64>
  %loss = nn.reduce sum %5 dims = [0, 1] : tensor<12x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
