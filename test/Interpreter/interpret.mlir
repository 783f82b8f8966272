// What a program computes on one device, printed.
// RUN: shoal-opt %s -split-input-file --interpret="steps=2" -o /dev/null | FileCheck %s
// RUN: shoal-opt %s -split-input-file --interpret="precision=f64" -o /dev/null | FileCheck %s --check-prefix=F64

// State is fed back from step to step: the step counter counts, the parameter halves.
// CHECK: step 0 result 0 (loss): tensor<f32> sum 6 sumsq 36 [6]
// CHECK-NEXT: step 0 result 1 (new w): tensor<3xf32> sum 3 sumsq 3 [1, 1, 1]
// CHECK-NEXT: step 0 result 2 (new step): tensor<i64> sum 1 sumsq 1 [1]
// CHECK-NEXT: step 1 result 0 (loss): tensor<f32> sum 3 sumsq 9 [3]
// CHECK-NEXT: step 1 result 1 (new w): tensor<3xf32> sum 1.5 sumsq 0.75 [0.5, 0.5, 0.5]
// CHECK-NEXT: step 1 result 2 (new step): tensor<i64> sum 2 sumsq 4 [2]
func.func @feedback(%w: tensor<3xf32> {nn.param = #nn.param<"w", init = constant(2.0)>}, %step: tensor<i64> {nn.step})
    -> (tensor<f32> {nn.loss}, tensor<3xf32> {nn.updates = "w"}, tensor<i64> {nn.updates = "step"}) {
  %half = nn.constant dense<0.5> : tensor<f32>
  %one = nn.constant dense<1> : tensor<i64>
  %loss = nn.reduce sum %w dims = [0] : tensor<3xf32> -> tensor<f32>
  %next = nn.mul %w, %half : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %count = nn.add %step, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %loss, %next, %count : tensor<f32>, tensor<3xf32>, tensor<i64>
}

// -----

// Golden case reused_weight: sum(x @ w @ w), both uses of w feed its gradient (PyTorch, float64).
// CHECK: result 0: tensor<f64> sum -0.44 sumsq 0.1936 [-0.44]
// CHECK-NEXT: result 1: tensor<2x2xf64> {{.*}} [0.17, 1.05, -0.57, -1.13]
func.func @reused_weight() -> (tensor<f64>, tensor<2x2xf64>) {
  %x = nn.constant dense<[[1.1, -0.7]]> : tensor<1x2xf64>
  %w = nn.constant dense<[[0.4, -0.2], [0.7, 0.3]]> : tensor<2x2xf64>
  %h = nn.matmul %x, %w : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %y = nn.matmul %h, %w : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %loss = nn.reduce sum %y dims = [0, 1] : tensor<1x2xf64> -> tensor<f64>
  %dy = nn.constant dense<1.0> : tensor<1x2xf64>
  %dw2 = nn.matmul %h, %dy {transpose_a} : (tensor<1x2xf64>, tensor<1x2xf64>) -> tensor<2x2xf64>
  %dh = nn.matmul %dy, %w {transpose_b} : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %dw1 = nn.matmul %x, %dh {transpose_a} : (tensor<1x2xf64>, tensor<1x2xf64>) -> tensor<2x2xf64>
  %dw = nn.add %dw1, %dw2 : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %loss, %dw : tensor<f64>, tensor<2x2xf64>
}

// -----

// In the program's types every result is rounded to its element type, in f64 none is.
// CHECK: result 0: tensor<bf16> sum 1 sumsq 1 [1]
// F64: result 0: tensor<bf16> sum 1.001 sumsq 1.002001 [1.001]
func.func @rounding() -> tensor<bf16> {
  %big = nn.constant dense<1.0> : tensor<f64>
  %small = nn.constant dense<0.001> : tensor<f64>
  %sum = nn.add %big, %small : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %rounded = nn.cast %sum : tensor<f64> -> tensor<bf16>
  return %rounded : tensor<bf16>
}

// -----

// Targets that are ignored count neither in the sum nor in the mean; one outside the classes makes the loss NaN;
// when all are ignored loss and gradient are 0, whatever the logits.
// CHECK: result 0: tensor<f64> sum 0.693147181
// CHECK-NEXT: result 1: tensor<f64> sum nan
// CHECK-NEXT: result 2: tensor<f64> sum 0 sumsq 0 [0]
// CHECK-NEXT: result 3: tensor<2x2xf64> {{.*}} [-0.5, 0.5, 0, 0]
func.func @ignored_targets() -> (tensor<f64>, tensor<f64>, tensor<f64>, tensor<2x2xf64>) {
  %logits = nn.constant dense<[[3.0, 3.0], [0.0, 0x7FF8000000000000]]> : tensor<2x2xf64>
  %one = nn.constant dense<[0, -100]> : tensor<2xi64>
  %wrong = nn.constant dense<[2, -100]> : tensor<2xi64>
  %none = nn.constant dense<-1> : tensor<2xi64>
  %scale = nn.constant dense<1.0> : tensor<f64>
  %0, %lse0 = nn.cross_entropy mean %logits, %one : (tensor<2x2xf64>, tensor<2xi64>) -> tensor<f64>
  %1, %lse1 = nn.cross_entropy sum %logits, %wrong : (tensor<2x2xf64>, tensor<2xi64>) -> tensor<f64>
  %2, %lse2 = nn.cross_entropy mean %logits, %none ignore_index = -1 : (tensor<2x2xf64>, tensor<2xi64>) -> tensor<f64>
  %3 = nn.cross_entropy_grad %logits, %one, %lse0, %scale : (tensor<2x2xf64>, tensor<2xi64>, tensor<f64>) -> tensor<2x2xf64>
  return %0, %1, %2, %3 : tensor<f64>, tensor<f64>, tensor<f64>, tensor<2x2xf64>
}

// -----

// A mask compares global indices: the local ones plus an offset.
// CHECK: result 0: tensor<4xf64> {{.*}} [1, 2, -1, -1]
// CHECK-NEXT: result 1: tensor<4xi32> {{.*}} [-9, -9, -9, -9]
func.func @mask() -> (tensor<4xf64>, tensor<4xi32>) {
  %x = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
  %y = nn.constant dense<7> : tensor<4xi32>
  %limit = nn.constant dense<6> : tensor<i64>
  %offset = nn.constant dense<4> : tensor<i64>
  %0 = nn.mask %x dim = 0 limit = %limit offset = %offset fill = -1.0 : tensor<4xf64>
  %none = nn.constant dense<0> : tensor<i64>
  %1 = nn.mask %y dim = 0 limit = %none fill = -9.0 : tensor<4xi32>
  return %0, %1 : tensor<4xf64>, tensor<4xi32>
}

// -----

// NaN passes through maximum, reduce max and relu, so that padding which nobody masked is seen.
// CHECK: result 0: tensor<2xf64> {{.*}} [nan, 1]
// CHECK-NEXT: result 1: tensor<f64> sum nan
// CHECK-NEXT: result 2: tensor<2xf64> {{.*}} [nan, 0]
func.func @nan() -> (tensor<2xf64>, tensor<f64>, tensor<2xf64>) {
  %x = nn.constant dense<[0x7FF8000000000000, -1.0]> : tensor<2xf64>
  %one = nn.constant dense<1.0> : tensor<f64>
  %0 = nn.maximum %x, %one : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
  %1 = nn.reduce max %x dims = [0] : tensor<2xf64> -> tensor<f64>
  %2 = nn.relu %x : tensor<2xf64>
  return %0, %1, %2 : tensor<2xf64>, tensor<f64>, tensor<2xf64>
}

// -----

// Shapes: a slice past the end is moved inside, transpose takes input dimension permutation[i] as result dimension i.
// CHECK: result 0: tensor<2xf64> {{.*}} [3, 4]
// CHECK-NEXT: result 1: tensor<3x2xf64> {{.*}} [1, 4, 2, 5, 3, 6]
// CHECK-NEXT: result 2: tensor<4xf64> {{.*}} [0, 2, 3, 0]
func.func @shapes() -> (tensor<2xf64>, tensor<3x2xf64>, tensor<4xf64>) {
  %x = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
  %start = nn.constant dense<7> : tensor<i64>
  %0 = nn.dynamic_slice %x dim = 0 start = %start : tensor<4xf64> -> tensor<2xf64>
  %m = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf64>
  %1 = nn.transpose %m [1, 0] : tensor<2x3xf64> -> tensor<3x2xf64>
  %s = nn.slice %x dim = 0 start = 1 : tensor<4xf64> -> tensor<2xf64>
  %2 = nn.pad %s dim = 0 low = 1 : tensor<2xf64> -> tensor<4xf64>
  return %0, %1, %2 : tensor<2xf64>, tensor<3x2xf64>, tensor<4xf64>
}

// -----

// One step of AdamW from zero moments: the step is lr against the sign of the gradient, the decay is of the old parameter.
// CHECK: result 0: tensor<2xf64> {{.*}} [0.89, 1.09]
// CHECK-NEXT: result 1: tensor<2xf64> {{.*}} [0.2, -0.4]
// CHECK-NEXT: result 2: tensor<2xf64> {{.*}} [0.004, 0.016]
func.func @adamw() -> (tensor<2xf64>, tensor<2xf64>, tensor<2xf64>) {
  %p = nn.constant dense<1.0> : tensor<2xf64>
  %g = nn.constant dense<[2.0, -4.0]> : tensor<2xf64>
  %zero = nn.constant dense<0.0> : tensor<2xf64>
  %lr = nn.constant dense<0.1> : tensor<f64>
  %t = nn.constant dense<1> : tensor<i64>
  %0:3 = nn.adam_update %p, %g, %zero, %zero lr = %lr step = %t
      {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 0.0 : f64, weight_decay = 0.1 : f64, decoupled} : tensor<2xf64>, tensor<f64>
  return %0#0, %0#1, %0#2 : tensor<2xf64>, tensor<2xf64>, tensor<2xf64>
}

// -----

// The body of an accumulate runs once per micro-batch; its results are sums.
// CHECK: result 0: tensor<2xf64> {{.*}} [40, 60]
func.func @accumulate() -> tensor<2xf64> {
  %x = nn.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf64>
  %ten = nn.constant dense<10.0> : tensor<f64>
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%part: tensor<2xf64>):
    %1 = nn.mul %part, %ten : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
    dist.yield %1 : tensor<2xf64>
  } : (tensor<4xf64>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}

// -----

// An integer divided by zero is 0, as in kernels.
// CHECK: result 0: tensor<4xi64> {{.*}} [-3, 0, 0, -7]
func.func @division() -> tensor<4xi64> {
  %a = nn.constant dense<[-7, 5, 0, 7]> : tensor<4xi64>
  %b = nn.constant dense<[2, 0, 0, -1]> : tensor<4xi64>
  %0 = nn.div %a, %b : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

// And so is an integer mean of nothing.
// CHECK: result 0: tensor<i32> {{.*}} [0]
func.func @nothing() -> tensor<i32> {
  %0 = nn.constant dense<> : tensor<0xi32>
  %1 = nn.reduce mean %0 dims = [0] : tensor<0xi32> -> tensor<i32>
  return %1 : tensor<i32>
}

// -----

// Rows in another order, dropped by their positions and put back, are those that are dropped where they lie. A part of
// them knows the whole by its shape: its rows are the same.
// CHECK: result 0: tensor<f64> sum 0 sumsq 0 [0]
// CHECK-NEXT: result 1: tensor<f64> sum 0 sumsq 0 [0]
// CHECK-NEXT: result 2: tensor<i1> sum 1 sumsq 1 [1]
func.func @positions(%x: tensor<4x7x6xf64>) -> (tensor<f64>, tensor<f64>, tensor<i1>) {
  %s = nn.constant dense<12345678901234> : tensor<i64>
  %t = nn.constant dense<3> : tensor<i64>
  %a = nn.dropout %x rate = 0.5 id = 1 seed = %s step = %t : tensor<4x7x6xf64>
  %rows = nn.iota dim = 0 : tensor<7xi64>
  %p = nn.zigzag %rows dim = 0 ranks = 3 : tensor<7xi64>
  %z = nn.zigzag %x dim = 1 ranks = 3 : tensor<4x7x6xf64>
  %d = nn.dropout %z rate = 0.5 id = 1 seed = %s step = %t positions = %p dim = 1 : tensor<4x7x6xf64>, tensor<7xi64>
  %b = nn.zigzag %d dim = 1 ranks = 3 inverse : tensor<4x7x6xf64>
  %off = nn.sub %a, %b : (tensor<4x7x6xf64>, tensor<4x7x6xf64>) -> tensor<4x7x6xf64>
  %square = nn.mul %off, %off : (tensor<4x7x6xf64>, tensor<4x7x6xf64>) -> tensor<4x7x6xf64>
  %0 = nn.reduce sum %square dims = [0, 1, 2] : tensor<4x7x6xf64> -> tensor<f64>

  %q = nn.constant dense<[6, 2]> : tensor<2xi64>
  %x6 = nn.slice %x dim = 1 start = 6 : tensor<4x7x6xf64> -> tensor<4x1x6xf64>
  %x2 = nn.slice %x dim = 1 start = 2 : tensor<4x7x6xf64> -> tensor<4x1x6xf64>
  %part = nn.concat %x6, %x2 dim = 1 : (tensor<4x1x6xf64>, tensor<4x1x6xf64>) -> tensor<4x2x6xf64>
  %e = nn.dropout %part rate = 0.5 id = 1 seed = %s step = %t global = [4, 7, 6] positions = %q dim = 1 : tensor<4x2x6xf64>, tensor<2xi64>
  %a6 = nn.slice %a dim = 1 start = 6 : tensor<4x7x6xf64> -> tensor<4x1x6xf64>
  %a2 = nn.slice %a dim = 1 start = 2 : tensor<4x7x6xf64> -> tensor<4x1x6xf64>
  %of_a = nn.concat %a6, %a2 dim = 1 : (tensor<4x1x6xf64>, tensor<4x1x6xf64>) -> tensor<4x2x6xf64>
  %off_part = nn.sub %e, %of_a : (tensor<4x2x6xf64>, tensor<4x2x6xf64>) -> tensor<4x2x6xf64>
  %square_part = nn.mul %off_part, %off_part : (tensor<4x2x6xf64>, tensor<4x2x6xf64>) -> tensor<4x2x6xf64>
  %1 = nn.reduce sum %square_part dims = [0, 1, 2] : tensor<4x2x6xf64> -> tensor<f64>

  // Without positions it would drop others.
  %c = nn.dropout %z rate = 0.5 id = 1 seed = %s step = %t : tensor<4x7x6xf64>
  %other = nn.sub %d, %c : (tensor<4x7x6xf64>, tensor<4x7x6xf64>) -> tensor<4x7x6xf64>
  %square_other = nn.mul %other, %other : (tensor<4x7x6xf64>, tensor<4x7x6xf64>) -> tensor<4x7x6xf64>
  %sum_other = nn.reduce sum %square_other dims = [0, 1, 2] : tensor<4x7x6xf64> -> tensor<f64>
  %one = nn.constant dense<1.0> : tensor<f64>
  %2 = nn.compare gt %sum_other, %one : (tensor<f64>, tensor<f64>) -> tensor<i1>
  return %0, %1, %2 : tensor<f64>, tensor<f64>, tensor<i1>
}
