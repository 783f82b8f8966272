// RUN: sed 's/MESH/"tensor"=2/' %s | shoal-opt --dist-tensor-parallel | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: sed 's/MESH/"tensor"=3/' %s | shoal-opt --dist-tensor-parallel | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: sed 's/MESH/"tensor"=4/' %s | shoal-opt --dist-tensor-parallel | FileCheck %s --check-prefixes=CHECK,FOUR

// Six query heads of two key/value heads. Two devices take a key/value head each; of three each takes one query head of either,
// and keys and values are whole; four are two by two: the axis is split, and only the queries are padded.
// TWO: dist.mesh @mesh <["tensor"=2]>
// THREE: dist.mesh @mesh <["tensor"=3]>
// FOUR: dist.mesh @mesh <["tensor.0"=2, "tensor.1"=2]>
dist.mesh @mesh <[MESH]>

// CHECK-LABEL: func.func @block
// CHECK-SAME: nn.input = "x"
// TWO-SAME: [{}, {"tensor"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// TWO-SAME: [{}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wk"
// TWO-SAME: [{}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wv"
// TWO-SAME: [{"tensor"}, {}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wo"
// TWO-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// THREE-SAME: [{}, {}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// THREE-SAME: tensor<8x2x3xf64> {nn.param = #nn.param<"wk"
// THREE-SAME: tensor<8x2x3xf64> {nn.param = #nn.param<"wv"
// THREE-SAME: [{}, {"tensor"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wo"
// FOUR-SAME: [{}, {"tensor.0"}, {"tensor.1"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// FOUR-SAME: [{}, {"tensor.0"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wk"
// FOUR-SAME: [{}, {"tensor.0"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wv"
// FOUR-SAME: [{"tensor.0"}, {"tensor.1"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wo"
// FOUR-SAME: [{}, {"tensor.0", "tensor.1"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// FOUR-SAME: [{"tensor.0", "tensor.1"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w2"
// CHECK-SAME: tensor<8xf64> {nn.param = #nn.param<"b2"
func.func @block(
    %x: tensor<4x6x8xf64> {nn.input = "x"},
    %y: tensor<4x6x8xf64> {nn.input = "y"},
    %p: tensor<6x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x2x3x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x2x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x2x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<2x3x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
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
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3x3xf64>) -> tensor<4x6x2x3x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3xf64>) -> tensor<4x6x2x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3xf64>) -> tensor<4x6x2x3xf64>
  %10 = nn.transpose %7 [0, 2, 3, 1, 4] : tensor<4x6x2x3x3xf64> -> tensor<4x2x3x6x3xf64>
  %11 = nn.transpose %8 [0, 2, 1, 3] : tensor<4x6x2x3xf64> -> tensor<4x2x6x3xf64>
  %12 = nn.reshape %11 : tensor<4x2x6x3xf64> -> tensor<4x2x1x6x3xf64>
  %13 = nn.broadcast %12 : tensor<4x2x1x6x3xf64> -> tensor<4x2x3x6x3xf64>
  %14 = nn.transpose %9 [0, 2, 1, 3] : tensor<4x6x2x3xf64> -> tensor<4x2x6x3xf64>
  %15 = nn.reshape %14 : tensor<4x2x6x3xf64> -> tensor<4x2x1x6x3xf64>
  %16 = nn.broadcast %15 : tensor<4x2x1x6x3xf64> -> tensor<4x2x3x6x3xf64>
  %17 = nn.matmul %10, %13 {transpose_b} : (tensor<4x2x3x6x3xf64>, tensor<4x2x3x6x3xf64>) -> tensor<4x2x3x6x6xf64>
  %18 = nn.softmax %17 dim = 4 : tensor<4x2x3x6x6xf64>
  %19 = nn.matmul %18, %16 : (tensor<4x2x3x6x6xf64>, tensor<4x2x3x6x3xf64>) -> tensor<4x2x3x6x3xf64>
  %20 = nn.transpose %19 [0, 3, 1, 2, 4] : tensor<4x2x3x6x3xf64> -> tensor<4x6x2x3x3xf64>
  %21 = nn.tensordot %20, %wo axes = 3 : (tensor<4x6x2x3x3xf64>, tensor<2x3x3x8xf64>) -> tensor<4x6x8xf64>
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

// One key/value head and eight queries: only the queries are sharded.
// CHECK-LABEL: func.func @one
// TWO-SAME: [{}, {}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// THREE-SAME: [{}, {}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// FOUR-SAME: [{}, {}, {"tensor.0", "tensor.1"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// CHECK-SAME: tensor<8x1x3xf64> {nn.param = #nn.param<"wk"
func.func @one(
    %x: tensor<4x6x8xf64> {nn.input = "x"},
    %y: tensor<4x6x8xf64> {nn.input = "y"},
    %p: tensor<6x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x1x8x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x1x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x1x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<1x8x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
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
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<4x6x8xf64>, tensor<8x1x8x3xf64>) -> tensor<4x6x1x8x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<4x6x8xf64>, tensor<8x1x3xf64>) -> tensor<4x6x1x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<4x6x8xf64>, tensor<8x1x3xf64>) -> tensor<4x6x1x3xf64>
  %10 = nn.transpose %7 [0, 2, 3, 1, 4] : tensor<4x6x1x8x3xf64> -> tensor<4x1x8x6x3xf64>
  %11 = nn.transpose %8 [0, 2, 1, 3] : tensor<4x6x1x3xf64> -> tensor<4x1x6x3xf64>
  %12 = nn.reshape %11 : tensor<4x1x6x3xf64> -> tensor<4x1x1x6x3xf64>
  %13 = nn.broadcast %12 : tensor<4x1x1x6x3xf64> -> tensor<4x1x8x6x3xf64>
  %14 = nn.transpose %9 [0, 2, 1, 3] : tensor<4x6x1x3xf64> -> tensor<4x1x6x3xf64>
  %15 = nn.reshape %14 : tensor<4x1x6x3xf64> -> tensor<4x1x1x6x3xf64>
  %16 = nn.broadcast %15 : tensor<4x1x1x6x3xf64> -> tensor<4x1x8x6x3xf64>
  %17 = nn.matmul %10, %13 {transpose_b} : (tensor<4x1x8x6x3xf64>, tensor<4x1x8x6x3xf64>) -> tensor<4x1x8x6x6xf64>
  %18 = nn.softmax %17 dim = 4 : tensor<4x1x8x6x6xf64>
  %19 = nn.matmul %18, %16 : (tensor<4x1x8x6x6xf64>, tensor<4x1x8x6x3xf64>) -> tensor<4x1x8x6x3xf64>
  %20 = nn.transpose %19 [0, 3, 1, 2, 4] : tensor<4x1x8x6x3xf64> -> tensor<4x6x1x8x3xf64>
  %21 = nn.tensordot %20, %wo axes = 3 : (tensor<4x6x1x8x3xf64>, tensor<1x8x3x8xf64>) -> tensor<4x6x8xf64>
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

// As many heads as queries: a head that is missing for the last device is padding.
// CHECK-LABEL: func.func @multi_head
// TWO-SAME: [{}, {"tensor"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// THREE-SAME: [{}, {"tensor"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// FOUR-SAME: [{}, {"tensor.0", "tensor.1"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
func.func @multi_head(
    %x: tensor<4x6x8xf64> {nn.input = "x"},
    %y: tensor<4x6x8xf64> {nn.input = "y"},
    %p: tensor<6x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x5x1x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x5x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x5x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<5x1x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
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
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<4x6x8xf64>, tensor<8x5x1x3xf64>) -> tensor<4x6x5x1x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<4x6x8xf64>, tensor<8x5x3xf64>) -> tensor<4x6x5x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<4x6x8xf64>, tensor<8x5x3xf64>) -> tensor<4x6x5x3xf64>
  %10 = nn.transpose %7 [0, 2, 3, 1, 4] : tensor<4x6x5x1x3xf64> -> tensor<4x5x1x6x3xf64>
  %11 = nn.transpose %8 [0, 2, 1, 3] : tensor<4x6x5x3xf64> -> tensor<4x5x6x3xf64>
  %12 = nn.reshape %11 : tensor<4x5x6x3xf64> -> tensor<4x5x1x6x3xf64>
  %13 = nn.broadcast %12 : tensor<4x5x1x6x3xf64> -> tensor<4x5x1x6x3xf64>
  %14 = nn.transpose %9 [0, 2, 1, 3] : tensor<4x6x5x3xf64> -> tensor<4x5x6x3xf64>
  %15 = nn.reshape %14 : tensor<4x5x6x3xf64> -> tensor<4x5x1x6x3xf64>
  %16 = nn.broadcast %15 : tensor<4x5x1x6x3xf64> -> tensor<4x5x1x6x3xf64>
  %17 = nn.matmul %10, %13 {transpose_b} : (tensor<4x5x1x6x3xf64>, tensor<4x5x1x6x3xf64>) -> tensor<4x5x1x6x6xf64>
  %18 = nn.softmax %17 dim = 4 : tensor<4x5x1x6x6xf64>
  %19 = nn.matmul %18, %16 : (tensor<4x5x1x6x6xf64>, tensor<4x5x1x6x3xf64>) -> tensor<4x5x1x6x3xf64>
  %20 = nn.transpose %19 [0, 3, 1, 2, 4] : tensor<4x5x1x6x3xf64> -> tensor<4x6x5x1x3xf64>
  %21 = nn.tensordot %20, %wo axes = 3 : (tensor<4x6x5x1x3xf64>, tensor<5x1x3x8xf64>) -> tensor<4x6x8xf64>
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

// Attention as one op has the heads of the ops that it is made of.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: nn.input = "x"
// TWO-SAME: [{}, {"tensor"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// TWO-SAME: [{}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wk"
// TWO-SAME: [{}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wv"
// TWO-SAME: [{"tensor"}, {}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wo"
// TWO-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// THREE-SAME: [{}, {}, {"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// THREE-SAME: tensor<8x2x3xf64> {nn.param = #nn.param<"wk"
// THREE-SAME: tensor<8x2x3xf64> {nn.param = #nn.param<"wv"
// THREE-SAME: [{}, {"tensor"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wo"
// FOUR-SAME: [{}, {"tensor.0"}, {"tensor.1"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wq"
// FOUR-SAME: [{}, {"tensor.0"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wk"
// FOUR-SAME: [{}, {"tensor.0"}, {}]>, {{[^%]*}}nn.param = #nn.param<"wv"
// FOUR-SAME: [{"tensor.0"}, {"tensor.1"}, {}, {}]>, {{[^%]*}}nn.param = #nn.param<"wo"
// FOUR-SAME: [{}, {"tensor.0", "tensor.1"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// FOUR-SAME: [{"tensor.0", "tensor.1"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w2"
// CHECK-SAME: tensor<8xf64> {nn.param = #nn.param<"b2"
func.func @attention(
    %x: tensor<4x6x8xf64> {nn.input = "x"},
    %y: tensor<4x6x8xf64> {nn.input = "y"},
    %p: tensor<6x8xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<8xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<8x2x3x3xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<8x2x3xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<8x2x3xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<2x3x3x8xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
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
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3x3xf64>) -> tensor<4x6x2x3x3xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3xf64>) -> tensor<4x6x2x3xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<4x6x8xf64>, tensor<8x2x3xf64>) -> tensor<4x6x2x3xf64>
  %o, %lse = nn.attention %7, %8, %9 causal scale = 0.5 : (tensor<4x6x2x3x3xf64>, tensor<4x6x2x3xf64>, tensor<4x6x2x3xf64>) -> tensor<4x6x2x3x3xf64>
  %10 = nn.tensordot %o, %wo axes = 3 : (tensor<4x6x2x3x3xf64>, tensor<2x3x3x8xf64>) -> tensor<4x6x8xf64>
  %11 = nn.add %0, %10 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %12 = nn.mul %11, %11 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %13 = nn.reduce mean %12 dims = [2] {keep_dims} : tensor<4x6x8xf64> -> tensor<4x6x1xf64>
  %14 = nn.add %13, %eps : (tensor<4x6x1xf64>, tensor<f64>) -> tensor<4x6x1xf64>
  %15 = nn.rsqrt %14 : tensor<4x6x1xf64>
  %16 = nn.mul %11, %15 : (tensor<4x6x8xf64>, tensor<4x6x1xf64>) -> tensor<4x6x8xf64>
  %17 = nn.mul %16, %g2 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
  %18 = nn.tensordot %17, %w1 axes = 1 : (tensor<4x6x8xf64>, tensor<8x10xf64>) -> tensor<4x6x10xf64>
  %19 = nn.tensordot %17, %w3 axes = 1 : (tensor<4x6x8xf64>, tensor<8x10xf64>) -> tensor<4x6x10xf64>
  %20 = nn.silu %19 : tensor<4x6x10xf64>
  %21 = nn.mul %20, %18 : (tensor<4x6x10xf64>, tensor<4x6x10xf64>) -> tensor<4x6x10xf64>
  %22 = nn.tensordot %21, %w2 axes = 1 : (tensor<4x6x10xf64>, tensor<10x8xf64>) -> tensor<4x6x8xf64>
  %23 = nn.add %22, %b2 : (tensor<4x6x8xf64>, tensor<8xf64>) -> tensor<4x6x8xf64>
  %24 = nn.add %11, %23 : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<4x6x8xf64>
  %loss = nn.mse_loss mean %24, %y : (tensor<4x6x8xf64>, tensor<4x6x8xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
