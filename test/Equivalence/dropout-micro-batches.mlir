// Micro-batches drop the elements that the whole batch drops: the sum over them is the one without micro-batches, on one
// device and on several, also where the rows of a micro-batch do not divide.
// DEFINE: %{mesh} = "data"=1
// DEFINE: %{count} = 1
// DEFINE: %{rows} = 12
// DEFINE: %{seed} = sed 's/MESH/%{mesh}/; s/COUNT/%{count}/; s/ROWS/%{rows}/g' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --nn-seed --dist-number --dist-data-parallel --dist-propagate --dist-verify-global -o %t.global.mlir
// DEFINE: %{same} = shoal-opt %t.global.mlir --interpret -o /dev/null > %t.result && diff %t.result %t.whole
// DEFINE: %{check} = shoal-opt %t.global.mlir --dist-partition --dist-verify-local --dist-expand-collectives \
// DEFINE:   --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// RUN: %{seed}
// RUN: shoal-opt %t.global.mlir --interpret -o /dev/null > %t.whole
// RUN: FileCheck %s --input-file=%t.whole
// CHECK: result 0 (sums): tensor<4xf64> sum {{[1-9]}}
// REDEFINE: %{mesh} = "data"=2
// REDEFINE: %{count} = 3
// REDEFINE: %{rows} = 4
// RUN: %{seed}
// RUN: %{same}
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3
// REDEFINE: %{count} = 6
// REDEFINE: %{rows} = 2
// RUN: %{seed}
// RUN: %{same}
// RUN: %{check}

dist.mesh @mesh <[MESH]>
// Whole numbers, so that no order of the sum rounds.
func.func @step(%n: tensor<12xi64> {nn.input = "n"}) -> (tensor<4xf64> {nn.output = "sums"}) {
  %0 = nn.cast %n : tensor<12xi64> -> tensor<12xf64>
  %1 = nn.reshape %0 : tensor<12xf64> -> tensor<12x1xf64>
  %c = nn.iota dim = 1 : tensor<12x4xi64>
  %2 = nn.cast %c : tensor<12x4xi64> -> tensor<12x4xf64>
  %x = nn.add %1, %2 : (tensor<12x1xf64>, tensor<12x4xf64>) -> tensor<12x4xf64>
  %sums = dist.accumulate(%x) microbatches = COUNT {
  ^bb0(%xm: tensor<ROWSx4xf64>):
    %3 = nn.dropout %xm rate = 0.5 id = 0 : tensor<ROWSx4xf64>
    %4 = nn.transpose %3 [1, 0] : tensor<ROWSx4xf64> -> tensor<4xROWSxf64>
    %5 = nn.dropout %4 rate = 0.5 id = 1 : tensor<4xROWSxf64>
    %6 = nn.reduce sum %5 dims = [1] : tensor<4xROWSxf64> -> tensor<4xf64>
    dist.yield %6 : tensor<4xf64>
  } : (tensor<12x4xf64>) -> tensor<4xf64>
  return %sums : tensor<4xf64>
}
