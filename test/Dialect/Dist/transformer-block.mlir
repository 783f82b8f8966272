// A transformer block has the collectives that it must have and no others: over the tensor axis two all-reduces of the residual stream
// forward and two backward; with its sequence sharded, two gathers and two reduce-scatters in either pass and two gathers of what the
// backward pass needs again, or, when gathered values are kept, none of these. Gradients of norms and of the row-parallel bias are whole in the first
// case; with the sequence sharded they are partial over the axis, and packed before they are reduced.
// DEFINE: %{options} =
// DEFINE: %{make} = shoal-opt %s --shoal-global="model-axes=tensor tensor-parallel=true %{options} optimizer=adam" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="model-axes=tensor" --dist-verify-plan=reference=%t.global.mlir -o %t.mlir
// RUN: %{make}
// RUN: grep -E -o 'dist\.(all_gather|reduce_scatter|all_reduce|all_to_all|collective_permute) .*' %t.mlir | FileCheck %s --check-prefix=TP
// REDEFINE: %{options} = sequence-parallel=true
// RUN: %{make}
// RUN: grep -E -o 'dist\.(all_gather|reduce_scatter|all_reduce|all_to_all|collective_permute) .*' %t.mlir | FileCheck %s --check-prefix=SP
// REDEFINE: %{options} = sequence-parallel=true keep-gathered=true
// RUN: %{make}
// RUN: grep -E -o 'dist\.(all_gather|reduce_scatter|all_reduce|all_to_all|collective_permute) .*' %t.mlir | FileCheck %s --check-prefix=KEEP

// Behind wo and w2, before w1 and w3, before wq, wk and wv.
// TP: dist.all_reduce {"tensor"} sum {{.*}} : tensor<4x6x8xf64>
// TP-NEXT: dist.all_reduce {"tensor"} sum {{.*}} : tensor<4x6x8xf64>
// TP-NEXT: dist.all_reduce {"tensor"} sum {{.*}} : tensor<4x6x8xf64>
// TP-NEXT: dist.all_reduce {"tensor"} sum {{.*}} : tensor<4x6x8xf64>
// TP-NOT: dist

// The stream starts at a table of positions, which lies by sequence as its gradient does, and ends in a loss.
// SP: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// SP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// SP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// SP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// SP-NEXT: dist.all_reduce {"tensor"} sum {{.*}}loss{{.*}} : tensor<f64>
// SP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// SP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}}{dist.refetch, {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// SP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// SP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// SP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}}{dist.refetch, {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// SP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// SP-NEXT: dist.all_reduce {"tensor"} sum {{.*}}gradients of b2, g2, g1 are partial sums{{.*}} : tensor<24xf64>
// SP-NOT: dist

// Four and four.
// KEEP: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// KEEP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// KEEP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// KEEP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// KEEP-NEXT: dist.all_reduce {"tensor"} sum {{.*}}loss{{.*}} : tensor<f64>
// KEEP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// KEEP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// KEEP-NEXT: dist.all_gather {"tensor"} dim = 1 {{.*}} : tensor<4x3x8xf64> -> tensor<4x6x8xf64>
// KEEP-NEXT: dist.reduce_scatter {"tensor"} sum dim = 1 {{.*}} : tensor<4x6x8xf64> -> tensor<4x3x8xf64>
// KEEP-NEXT: dist.all_reduce {"tensor"} sum {{.*}}gradients of b2, g2, g1 are partial sums{{.*}} : tensor<24xf64>
// KEEP-NOT: dist
dist.mesh @mesh <["tensor"=2]>
func.func @block(
    %x: tensor<4x6x8xf64> {nn.input = "x"},
    %y: tensor<4x6x8xf64> {nn.input = "y"},
    %p: tensor<6x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x2x2x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x2x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x2x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<2x2x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
    %g2: tensor<8xf64> {nn.param = #nn.param<"g2", init = uniform(-0.5, 0.5)>},
    %w1: tensor<8x10xf64> {nn.param = #nn.param<"w1", init = uniform(-0.5, 0.5)>},
    %w3: tensor<8x10xf64> {nn.param = #nn.param<"w3", init = uniform(-0.5, 0.5)>},
    %w2: tensor<10x8xf64> {nn.param = #nn.param<"w2", init = uniform(-0.5, 0.5)>},
    %b2: tensor<8xf64> {nn.param = #nn.param<"b2", init = uniform(-0.5, 0.5)>})
    -> (tensor<f64> {nn.loss}) {
  %eps = nn.constant dense<1.0e-5> : tensor<f64>
  %0 = nn.add %x, %p : (tensor<4x6x8xf64>, tensor<6x8xf64>) -> tensor<4x6x8xf64>
  %1 = nn.mul %0, %0 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %2 = nn.reduce mean %1 dims = [2] {keep_dims} : tensor<4x6x8xf64> -> tensor<4x6x1xf64>
  %3 = nn.add %2, %eps : (tensor<4x6x1xf64>, tensor<f64>) -> tensor<4x6x1xf64>
  %4 = nn.rsqrt %3 : tensor<4x6x1xf64>
  %5 = nn.mul %0, %4 : (tensor<4x6x8xf64>, tensor<4x6x1xf64>) -> tensor<4x6x8xf64>
  %6 = nn.mul %5, %g1 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x2x3xf64>) -> tensor<4x6x2x2x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3xf64>) -> tensor<4x6x2x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3xf64>) -> tensor<4x6x2x3xf64>
  %10 = nn.transpose %7 [0, 2, 3, 1, 4] : tensor<4x6x2x2x3xf64> -> tensor<4x2x2x6x3xf64>
  %11 = nn.transpose %8 [0, 2, 1, 3] : tensor<4x6x2x3xf64> -> tensor<4x2x6x3xf64>
  %12 = nn.reshape %11 : tensor<4x2x6x3xf64> -> tensor<4x2x1x6x3xf64>
  %13 = nn.broadcast %12 : tensor<4x2x1x6x3xf64> -> tensor<4x2x2x6x3xf64>
  %14 = nn.transpose %9 [0, 2, 1, 3] : tensor<4x6x2x3xf64> -> tensor<4x2x6x3xf64>
  %15 = nn.reshape %14 : tensor<4x2x6x3xf64> -> tensor<4x2x1x6x3xf64>
  %16 = nn.broadcast %15 : tensor<4x2x1x6x3xf64> -> tensor<4x2x2x6x3xf64>
  %17 = nn.matmul %10, %13 {transpose_b} : (tensor<4x2x2x6x3xf64>, tensor<4x2x2x6x3xf64>) -> tensor<4x2x2x6x6xf64>
  %18 = nn.softmax %17 dim = 4 : tensor<4x2x2x6x6xf64>
  %19 = nn.matmul %18, %16 : (tensor<4x2x2x6x6xf64>, tensor<4x2x2x6x3xf64>) -> tensor<4x2x2x6x3xf64>
  %20 = nn.transpose %19 [0, 3, 1, 2, 4] : tensor<4x2x2x6x3xf64> -> tensor<4x6x2x2x3xf64>
  %21 = nn.tensordot %20, %wo axes = 3 : (tensor<4x6x2x2x3xf64>, tensor<2x2x3x8xf64>) -> tensor<4x6x8xf64>
  %22 = nn.add %0, %21 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %23 = nn.mul %22, %22 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %24 = nn.reduce mean %23 dims = [2] {keep_dims} : tensor<4x6x8xf64> -> tensor<4x6x1xf64>
  %25 = nn.add %24, %eps : (tensor<4x6x1xf64>, tensor<f64>) -> tensor<4x6x1xf64>
  %26 = nn.rsqrt %25 : tensor<4x6x1xf64>
  %27 = nn.mul %22, %26 : (tensor<4x6x8xf64>, tensor<4x6x1xf64>) -> tensor<4x6x8xf64>
  %28 = nn.mul %27, %g2 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
  %29 = nn.tensordot %28, %w1 axes = 1 : (tensor<4x6x8xf64>, tensor<8x10xf64>) -> tensor<4x6x10xf64>
  %30 = nn.tensordot %28, %w3 axes = 1 : (tensor<4x6x8xf64>, tensor<8x10xf64>) -> tensor<4x6x10xf64>
  %31 = nn.silu %30 : tensor<4x6x10xf64>
  %32 = nn.mul %31, %29 : (tensor<4x6x10xf64>, tensor<4x6x10xf64>) -> tensor<4x6x10xf64>
  %33 = nn.tensordot %32, %w2 axes = 1 : (tensor<4x6x10xf64>, tensor<10x8xf64>) -> tensor<4x6x8xf64>
  %34 = nn.add %33, %b2 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
  %35 = nn.add %22, %34 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %loss = nn.mse_loss mean %35, %y : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
