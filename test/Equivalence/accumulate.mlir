// Micro-batches are those of one device under every plan: each rank computes its part of each, their sums are reduced
// once, also where rows of a micro-batch do not divide, and where a statistic of the micro-batch is not linear.
// DEFINE: %{mesh} =
// DEFINE: %{count} = 2
// DEFINE: %{rows} = 6
// DEFINE: %{check} = sed 's/MESH/%{mesh}/; s/COUNT/%{count}/; s/ROWS/%{rows}/g' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --dist-number --dist-data-parallel --dist-close-arguments --dist-propagate --dist-verify-global -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --dist-pack --dist-partition --dist-verify-local \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir --dist-optimize-collectives --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=4
// RUN: %{check}
// REDEFINE: %{count} = 3
// REDEFINE: %{rows} = 4
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=8
// RUN: %{check}
// REDEFINE: %{count} = 1
// REDEFINE: %{rows} = 12
// RUN: %{check}

// One reduction of the gradient, whatever the number of micro-batches.
// REDEFINE: %{mesh} = "data"=2
// REDEFINE: %{count} = 3
// REDEFINE: %{rows} = 4
// RUN: %{check}
// RUN: FileCheck %s --input-file=%t.local.mlir
// CHECK: dist.all_reduce {{.*}} tensor<15xf64>
// CHECK-NOT: dist.all_reduce {{.*}} tensor<15xf64>

dist.mesh @mesh <[MESH]>
func.func @step(
    %x: tensor<12x5xf64> {nn.input = "x"},
    %y: tensor<12x3xf64> {nn.input = "y"},
    %w: tensor<5x3xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}, tensor<5x3xf64> {nn.grad = "w"}, tensor<5x3xf64> {nn.updates = "w"}) {
  %loss, %g = dist.accumulate(%x, %y) microbatches = COUNT {
  ^bb0(%xm: tensor<ROWSx5xf64>, %ym: tensor<ROWSx3xf64>):
    %0 = nn.matmul %xm, %w : (tensor<ROWSx5xf64>, tensor<5x3xf64>) -> tensor<ROWSx3xf64>
    %max = nn.reduce max %0 dims = [0] : tensor<ROWSx3xf64> -> tensor<3xf64>
    %1 = nn.sub %0, %max : (tensor<ROWSx3xf64>, tensor<3xf64>) -> tensor<ROWSx3xf64>
    %2 = nn.sub %1, %ym : (tensor<ROWSx3xf64>, tensor<ROWSx3xf64>) -> tensor<ROWSx3xf64>
    %3 = nn.mul %2, %2 : (tensor<ROWSx3xf64>, tensor<ROWSx3xf64>) -> tensor<ROWSx3xf64>
    %4 = nn.reduce sum %3 dims = [0, 1] : tensor<ROWSx3xf64> -> tensor<f64>
    %5 = nn.matmul %xm, %2 {transpose_a} : (tensor<ROWSx5xf64>, tensor<ROWSx3xf64>) -> tensor<5x3xf64>
    dist.yield %4, %5 : tensor<f64>, tensor<5x3xf64>
  } : (tensor<12x5xf64>, tensor<12x3xf64>) -> (tensor<f64>, tensor<5x3xf64>)
  %lr = nn.constant dense<0.01> : tensor<f64>
  %new = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<5x3xf64>, tensor<f64>
  return %loss, %g, %new : tensor<f64>, tensor<5x3xf64>, tensor<5x3xf64>
}
