// --tensor-parallel and --sequence-parallel as real processes, with data parallelism, clipping, a short last batch and evaluation: sizes that
// nothing divides, an axis that is split between key/value heads and their queries (4 devices), permuted devices. Bytes promised
// are bytes counted, of parts of the axis too.
// RUN: %python %support/plans.py %s --rows 23 --work %t/tensor --shoalc "--tensor-parallel --optimizer adamw --lr 0.01 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=1, "tensor"=2]' '["data"=2, "tensor"=3]' '["tensor"=4, "data"=1]' '["data"=2, "tensor"=2], device_ids=[3, 1, 2, 0]'
// RUN: %python %support/plans.py %s --rows 23 --work %t/sequence --shoalc "--tensor-parallel --sequence-parallel --optimizer adamw --lr 0.01 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=1, "tensor"=2]' '["data"=2, "tensor"=3]' '["tensor"=4, "data"=1]' '["data"=2, "tensor"=2], device_ids=[3, 1, 2, 0]'
// RUN: %python %support/plans.py %s --rows 23 --work %t/gathered --shoalc "--tensor-parallel --sequence-parallel --keep-gathered --optimizer sgd --lr 0.1 --momentum 0.9" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=2, "tensor"=2]'

dist.mesh @mesh <MESH>

func.func @transformer(
    %x: tensor<6x20xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %p: tensor<5x4xf64> {nn.param = #nn.param<"p", init = uniform(-0.5, 0.5)>},
    %g1: tensor<4xf64> {nn.param = #nn.param<"g1", init = uniform(-0.5, 0.5)>},
    %wq: tensor<4x2x3x2xf64> {nn.param = #nn.param<"wq", init = uniform(-0.5, 0.5)>},
    %wk: tensor<4x2x2xf64> {nn.param = #nn.param<"wk", init = uniform(-0.5, 0.5)>},
    %wv: tensor<4x2x2xf64> {nn.param = #nn.param<"wv", init = uniform(-0.5, 0.5)>},
    %wo: tensor<2x3x2x4xf64> {nn.param = #nn.param<"wo", init = uniform(-0.5, 0.5)>},
    %g2: tensor<4xf64> {nn.param = #nn.param<"g2", init = uniform(-0.5, 0.5)>},
    %w1: tensor<4x7xf64> {nn.param = #nn.param<"w1", init = uniform(-0.5, 0.5)>},
    %w3: tensor<4x7xf64> {nn.param = #nn.param<"w3", init = uniform(-0.5, 0.5)>},
    %w2: tensor<7x4xf64> {nn.param = #nn.param<"w2", init = uniform(-0.5, 0.5)>},
    %b2: tensor<4xf64> {nn.param = #nn.param<"b2", init = uniform(-0.5, 0.5)>},
    %wc: tensor<4x5xf64> {nn.param = #nn.param<"wc", init = uniform(-0.5, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x5xf64> {nn.output = "logits"}) {
  %tokens = nn.reshape %x : tensor<6x20xf64> -> tensor<6x5x4xf64>
  %eps = nn.constant dense<1.0e-5> : tensor<f64>
  %0 = nn.add %tokens, %p : (tensor<6x5x4xf64>, tensor<5x4xf64>) -> tensor<6x5x4xf64>
  %1 = nn.mul %0, %0 : (tensor<6x5x4xf64>, tensor<6x5x4xf64>) -> tensor<6x5x4xf64>
  %2 = nn.reduce mean %1 dims = [2] {keep_dims} : tensor<6x5x4xf64> -> tensor<6x5x1xf64>
  %3 = nn.add %2, %eps : (tensor<6x5x1xf64>, tensor<f64>) -> tensor<6x5x1xf64>
  %4 = nn.rsqrt %3 : tensor<6x5x1xf64>
  %5 = nn.mul %0, %4 : (tensor<6x5x4xf64>, tensor<6x5x1xf64>) -> tensor<6x5x4xf64>
  %6 = nn.mul %5, %g1 : (tensor<6x5x4xf64>, tensor<4xf64>) -> tensor<6x5x4xf64>
  %7 = nn.tensordot %6, %wq axes = 1 : (tensor<6x5x4xf64>, tensor<4x2x3x2xf64>) -> tensor<6x5x2x3x2xf64>
  %8 = nn.tensordot %6, %wk axes = 1 : (tensor<6x5x4xf64>, tensor<4x2x2xf64>) -> tensor<6x5x2x2xf64>
  %9 = nn.tensordot %6, %wv axes = 1 : (tensor<6x5x4xf64>, tensor<4x2x2xf64>) -> tensor<6x5x2x2xf64>
  %10 = nn.transpose %7 [0, 2, 3, 1, 4] : tensor<6x5x2x3x2xf64> -> tensor<6x2x3x5x2xf64>
  %11 = nn.transpose %8 [0, 2, 1, 3] : tensor<6x5x2x2xf64> -> tensor<6x2x5x2xf64>
  %12 = nn.reshape %11 : tensor<6x2x5x2xf64> -> tensor<6x2x1x5x2xf64>
  %13 = nn.broadcast %12 : tensor<6x2x1x5x2xf64> -> tensor<6x2x3x5x2xf64>
  %14 = nn.transpose %9 [0, 2, 1, 3] : tensor<6x5x2x2xf64> -> tensor<6x2x5x2xf64>
  %15 = nn.reshape %14 : tensor<6x2x5x2xf64> -> tensor<6x2x1x5x2xf64>
  %16 = nn.broadcast %15 : tensor<6x2x1x5x2xf64> -> tensor<6x2x3x5x2xf64>
  %17 = nn.matmul %10, %13 {transpose_b} : (tensor<6x2x3x5x2xf64>, tensor<6x2x3x5x2xf64>) -> tensor<6x2x3x5x5xf64>
  %18 = nn.softmax %17 dim = 4 : tensor<6x2x3x5x5xf64>
  %19 = nn.matmul %18, %16 : (tensor<6x2x3x5x5xf64>, tensor<6x2x3x5x2xf64>) -> tensor<6x2x3x5x2xf64>
  %20 = nn.transpose %19 [0, 3, 1, 2, 4] : tensor<6x2x3x5x2xf64> -> tensor<6x5x2x3x2xf64>
  %21 = nn.tensordot %20, %wo axes = 3 : (tensor<6x5x2x3x2xf64>, tensor<2x3x2x4xf64>) -> tensor<6x5x4xf64>
  %22 = nn.add %0, %21 : (tensor<6x5x4xf64>, tensor<6x5x4xf64>) -> tensor<6x5x4xf64>
  %23 = nn.mul %22, %22 : (tensor<6x5x4xf64>, tensor<6x5x4xf64>) -> tensor<6x5x4xf64>
  %24 = nn.reduce mean %23 dims = [2] {keep_dims} : tensor<6x5x4xf64> -> tensor<6x5x1xf64>
  %25 = nn.add %24, %eps : (tensor<6x5x1xf64>, tensor<f64>) -> tensor<6x5x1xf64>
  %26 = nn.rsqrt %25 : tensor<6x5x1xf64>
  %27 = nn.mul %22, %26 : (tensor<6x5x4xf64>, tensor<6x5x1xf64>) -> tensor<6x5x4xf64>
  %28 = nn.mul %27, %g2 : (tensor<6x5x4xf64>, tensor<4xf64>) -> tensor<6x5x4xf64>
  %29 = nn.tensordot %28, %w1 axes = 1 : (tensor<6x5x4xf64>, tensor<4x7xf64>) -> tensor<6x5x7xf64>
  %30 = nn.tensordot %28, %w3 axes = 1 : (tensor<6x5x4xf64>, tensor<4x7xf64>) -> tensor<6x5x7xf64>
  %31 = nn.silu %30 : tensor<6x5x7xf64>
  %32 = nn.mul %31, %29 : (tensor<6x5x7xf64>, tensor<6x5x7xf64>) -> tensor<6x5x7xf64>
  %33 = nn.tensordot %32, %w2 axes = 1 : (tensor<6x5x7xf64>, tensor<7x4xf64>) -> tensor<6x5x4xf64>
  %34 = nn.add %33, %b2 : (tensor<6x5x4xf64>, tensor<4xf64>) -> tensor<6x5x4xf64>
  %35 = nn.add %22, %34 : (tensor<6x5x4xf64>, tensor<6x5x4xf64>) -> tensor<6x5x4xf64>
  // The tokens of a row are summed, so logits see every device's part of the sequence.
  %sum = nn.reduce sum %35 dims = [1] : tensor<6x5x4xf64> -> tensor<6x4xf64>
  %logits = nn.matmul %sum, %wc : (tensor<6x4xf64>, tensor<4x5xf64>) -> tensor<6x5xf64>
  %loss, %lse = nn.cross_entropy mean %logits, %y : (tensor<6x5xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %logits : tensor<f64>, tensor<6x5xf64>
}
