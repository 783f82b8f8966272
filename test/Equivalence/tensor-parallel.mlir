// Tensor and sequence parallelism found from the graph, in every mix with data parallelism: a block of attention (six queries on two
// key/value heads) and a gated MLP, its gradients, clipping and Adam, against one device. Heads, features, sequence and rows that do not divide;
// the axis is split for four devices, keys and values are whole for three. A row-parallel bias is added once; norms' gradients are
// sums over both axes.
// DEFINE: %{mesh} =
// DEFINE: %{options} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor tensor-parallel=true %{options} optimizer=adam clip-grad-norm=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{options} = 
// REDEFINE: %{mesh} = "data"=1, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=4, "data"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3], device_ids=[4, 1, 5, 0, 3, 2
// RUN: %{check}
// REDEFINE: %{options} = sequence-parallel=true
// REDEFINE: %{mesh} = "data"=1, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=1, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=4, "data"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3], device_ids=[4, 1, 5, 0, 3, 2
// RUN: %{check}
// REDEFINE: %{options} = sequence-parallel=true keep-gathered=true
// REDEFINE: %{mesh} = "data"=2, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=4, "data"=1
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @block(
    %x: tensor<5x7x8xf64> {nn.input = "x"},
    %y: tensor<5x7x8xf64> {nn.input = "y"},
    %p: tensor<7x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x2x3x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x2x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x2x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<2x3x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
    %g2: tensor<8xf64> {nn.param = #nn.param<"g2", init = uniform(-0.5, 0.5)>},
    %w1: tensor<8x11xf64> {nn.param = #nn.param<"w1", init = uniform(-0.5, 0.5)>},
    %w3: tensor<8x11xf64> {nn.param = #nn.param<"w3", init = uniform(-0.5, 0.5)>},
    %w2: tensor<11x8xf64> {nn.param = #nn.param<"w2", init = uniform(-0.5, 0.5)>},
    %b2: tensor<8xf64> {nn.param = #nn.param<"b2", init = uniform(-0.5, 0.5)>})
    -> (tensor<f64> {nn.loss}) {
  %eps = nn.constant dense<1.0e-5> : tensor<f64>
  %0 = nn.add %x, %p : (tensor<5x7x8xf64>, tensor<7x8xf64>) -> tensor<5x7x8xf64>
  %1 = nn.mul %0, %0 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %2 = nn.reduce mean %1 dims = [2] {keep_dims} : tensor<5x7x8xf64> -> tensor<5x7x1xf64>
  %3 = nn.add %2, %eps : (tensor<5x7x1xf64>, tensor<f64>) -> tensor<5x7x1xf64>
  %4 = nn.rsqrt %3 : tensor<5x7x1xf64>
  %5 = nn.mul %0, %4 : (tensor<5x7x8xf64>, tensor<5x7x1xf64>) -> tensor<5x7x8xf64>
  %6 = nn.mul %5, %g1 : (tensor<5x7x8xf64>, tensor<8xf64>) -> tensor<5x7x8xf64>
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<5x7x8xf64>, tensor<8x2x3x3xf64>) -> tensor<5x7x2x3x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<5x7x8xf64>, tensor<8x2x3xf64>) -> tensor<5x7x2x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<5x7x8xf64>, tensor<8x2x3xf64>) -> tensor<5x7x2x3xf64>
  %10 = nn.transpose %7 [0, 2, 3, 1, 4] : tensor<5x7x2x3x3xf64> -> tensor<5x2x3x7x3xf64>
  %11 = nn.transpose %8 [0, 2, 1, 3] : tensor<5x7x2x3xf64> -> tensor<5x2x7x3xf64>
  %12 = nn.reshape %11 : tensor<5x2x7x3xf64> -> tensor<5x2x1x7x3xf64>
  %13 = nn.broadcast %12 : tensor<5x2x1x7x3xf64> -> tensor<5x2x3x7x3xf64>
  %14 = nn.transpose %9 [0, 2, 1, 3] : tensor<5x7x2x3xf64> -> tensor<5x2x7x3xf64>
  %15 = nn.reshape %14 : tensor<5x2x7x3xf64> -> tensor<5x2x1x7x3xf64>
  %16 = nn.broadcast %15 : tensor<5x2x1x7x3xf64> -> tensor<5x2x3x7x3xf64>
  %17 = nn.matmul %10, %13 {transpose_b} : (tensor<5x2x3x7x3xf64>, tensor<5x2x3x7x3xf64>) -> tensor<5x2x3x7x7xf64>
  %18 = nn.softmax %17 dim = 4 : tensor<5x2x3x7x7xf64>
  %19 = nn.matmul %18, %16 : (tensor<5x2x3x7x7xf64>, tensor<5x2x3x7x3xf64>) -> tensor<5x2x3x7x3xf64>
  %20 = nn.transpose %19 [0, 3, 1, 2, 4] : tensor<5x2x3x7x3xf64> -> tensor<5x7x2x3x3xf64>
  %21 = nn.tensordot %20, %wo axes = 3 : (tensor<5x7x2x3x3xf64>, tensor<2x3x3x8xf64>) -> tensor<5x7x8xf64>
  %22 = nn.add %0, %21 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %23 = nn.mul %22, %22 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %24 = nn.reduce mean %23 dims = [2] {keep_dims} : tensor<5x7x8xf64> -> tensor<5x7x1xf64>
  %25 = nn.add %24, %eps : (tensor<5x7x1xf64>, tensor<f64>) -> tensor<5x7x1xf64>
  %26 = nn.rsqrt %25 : tensor<5x7x1xf64>
  %27 = nn.mul %22, %26 : (tensor<5x7x8xf64>, tensor<5x7x1xf64>) -> tensor<5x7x8xf64>
  %28 = nn.mul %27, %g2 : (tensor<5x7x8xf64>, tensor<8xf64>) -> tensor<5x7x8xf64>
  %29 = nn.tensordot %28, %w1 axes = 1 : (tensor<5x7x8xf64>, tensor<8x11xf64>) -> tensor<5x7x11xf64>
  %30 = nn.tensordot %28, %w3 axes = 1 : (tensor<5x7x8xf64>, tensor<8x11xf64>) -> tensor<5x7x11xf64>
  %31 = nn.silu %30 : tensor<5x7x11xf64>
  %32 = nn.mul %31, %29 : (tensor<5x7x11xf64>, tensor<5x7x11xf64>) -> tensor<5x7x11xf64>
  %33 = nn.tensordot %32, %w2 axes = 1 : (tensor<5x7x11xf64>, tensor<11x8xf64>) -> tensor<5x7x8xf64>
  %34 = nn.add %33, %b2 : (tensor<5x7x8xf64>, tensor<8xf64>) -> tensor<5x7x8xf64>
  %35 = nn.add %22, %34 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %loss = nn.mse_loss mean %35, %y : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}

// Behind the rows a nonlinear op reads sums, never one device's part of them.
func.func @nonlinear(
    %x: tensor<5x6xf64> {nn.input = "x"},
    %w1: tensor<6x11xf64> {nn.param = #nn.param<"w1", init = uniform(-0.5, 0.5)>},
    %w2: tensor<11x7xf64> {nn.param = #nn.param<"w2", init = uniform(-0.5, 0.5)>},
    %w3: tensor<7x9xf64> {nn.param = #nn.param<"w3", init = uniform(-0.5, 0.5)>},
    %w4: tensor<9x3xf64> {nn.param = #nn.param<"w4", init = uniform(-0.5, 0.5)>}) -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<5x6xf64>, tensor<6x11xf64>) -> tensor<5x11xf64>
  %1 = nn.matmul %0, %w2 : (tensor<5x11xf64>, tensor<11x7xf64>) -> tensor<5x7xf64>
  %2 = nn.tanh %1 : tensor<5x7xf64>
  %3 = nn.matmul %2, %w3 : (tensor<5x7xf64>, tensor<7x9xf64>) -> tensor<5x9xf64>
  %4 = nn.gelu tanh %3 : tensor<5x9xf64>
  %5 = nn.matmul %4, %w4 : (tensor<5x9xf64>, tensor<9x3xf64>) -> tensor<5x3xf64>
  %6 = nn.exp %5 : tensor<5x3xf64>
  %loss = nn.reduce mean %6 dims = [0, 1] : tensor<5x3xf64> -> tensor<f64>
  return %loss : tensor<f64>
}

// The same block with its attention as one op.
func.func @attention(
    %x: tensor<5x7x8xf64> {nn.input = "x"},
    %y: tensor<5x7x8xf64> {nn.input = "y"},
    %p: tensor<7x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x2x3x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x2x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x2x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<2x3x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
    %g2: tensor<8xf64> {nn.param = #nn.param<"g2", init = uniform(-0.5, 0.5)>},
    %w1: tensor<8x11xf64> {nn.param = #nn.param<"w1", init = uniform(-0.5, 0.5)>},
    %w3: tensor<8x11xf64> {nn.param = #nn.param<"w3", init = uniform(-0.5, 0.5)>},
    %w2: tensor<11x8xf64> {nn.param = #nn.param<"w2", init = uniform(-0.5, 0.5)>},
    %b2: tensor<8xf64> {nn.param = #nn.param<"b2", init = uniform(-0.5, 0.5)>})
    -> (tensor<f64> {nn.loss}) {
  %eps = nn.constant dense<1.0e-5> : tensor<f64>
  %0 = nn.add %x, %p : (tensor<5x7x8xf64>, tensor<7x8xf64>) -> tensor<5x7x8xf64>
  %1 = nn.mul %0, %0 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %2 = nn.reduce mean %1 dims = [2] {keep_dims} : tensor<5x7x8xf64> -> tensor<5x7x1xf64>
  %3 = nn.add %2, %eps : (tensor<5x7x1xf64>, tensor<f64>) -> tensor<5x7x1xf64>
  %4 = nn.rsqrt %3 : tensor<5x7x1xf64>
  %5 = nn.mul %0, %4 : (tensor<5x7x8xf64>, tensor<5x7x1xf64>) -> tensor<5x7x8xf64>
  %6 = nn.mul %5, %g1 : (tensor<5x7x8xf64>, tensor<8xf64>) -> tensor<5x7x8xf64>
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<5x7x8xf64>, tensor<8x2x3x3xf64>) -> tensor<5x7x2x3x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<5x7x8xf64>, tensor<8x2x3xf64>) -> tensor<5x7x2x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<5x7x8xf64>, tensor<8x2x3xf64>) -> tensor<5x7x2x3xf64>
  %o, %lse = nn.attention %7, %8, %9 causal scale = 0.5 : (tensor<5x7x2x3x3xf64>, tensor<5x7x2x3xf64>, tensor<5x7x2x3xf64>) -> tensor<5x7x2x3x3xf64>
  %10 = nn.tensordot %o, %wo axes = 3 : (tensor<5x7x2x3x3xf64>, tensor<2x3x3x8xf64>) -> tensor<5x7x8xf64>
  %11 = nn.add %0, %10 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %12 = nn.mul %11, %11 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %13 = nn.reduce mean %12 dims = [2] {keep_dims} : tensor<5x7x8xf64> -> tensor<5x7x1xf64>
  %14 = nn.add %13, %eps : (tensor<5x7x1xf64>, tensor<f64>) -> tensor<5x7x1xf64>
  %15 = nn.rsqrt %14 : tensor<5x7x1xf64>
  %16 = nn.mul %11, %15 : (tensor<5x7x8xf64>, tensor<5x7x1xf64>) -> tensor<5x7x8xf64>
  %17 = nn.mul %16, %g2 : (tensor<5x7x8xf64>, tensor<8xf64>) -> tensor<5x7x8xf64>
  %18 = nn.tensordot %17, %w1 axes = 1 : (tensor<5x7x8xf64>, tensor<8x11xf64>) -> tensor<5x7x11xf64>
  %19 = nn.tensordot %17, %w3 axes = 1 : (tensor<5x7x8xf64>, tensor<8x11xf64>) -> tensor<5x7x11xf64>
  %20 = nn.silu %19 : tensor<5x7x11xf64>
  %21 = nn.mul %20, %18 : (tensor<5x7x11xf64>, tensor<5x7x11xf64>) -> tensor<5x7x11xf64>
  %22 = nn.tensordot %21, %w2 axes = 1 : (tensor<5x7x11xf64>, tensor<11x8xf64>) -> tensor<5x7x8xf64>
  %23 = nn.add %22, %b2 : (tensor<5x7x8xf64>, tensor<8xf64>) -> tensor<5x7x8xf64>
  %24 = nn.add %11, %23 : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<5x7x8xf64>
  %loss = nn.mse_loss mean %24, %y : (tensor<5x7x8xf64>, tensor<5x7x8xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
