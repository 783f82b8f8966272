// RUN: shoal-opt %s -split-input-file --exec-outline-kernels | FileCheck %s

// An elementwise chain is one kernel; the bias broadcasts inside it. Equal chains are the same kernel.

// CHECK: func.func private @k_add_relu_0(%[[A:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4xf32>) -> tensor<8x4xf32> attributes {exec.kernel}
// CHECK-NEXT: %[[S:.*]] = nn.add %[[A]], %[[B]]
// CHECK-NEXT: %[[R:.*]] = nn.relu %[[S]]
// CHECK-NEXT: return %[[R]]
// CHECK-NOT: func.func private
// CHECK: func.func @chain
// CHECK: %[[M:.*]] = nn.matmul
// CHECK: %[[H:.*]] = exec.call @k_add_relu_0(%[[M]], %{{.*}})
// CHECK: %[[N:.*]] = nn.matmul %[[H]]
// CHECK: exec.call @k_add_relu_0(%[[N]], %{{.*}})
func.func @chain(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.add %0, %b {dist.id = 1 : i64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %2 = nn.relu %1 {dist.id = 2 : i64} : tensor<8x4xf32>
  %3 = nn.matmul %2, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %4 = nn.add %3, %b {dist.id = 3 : i64} : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %5 = nn.relu %4 {dist.id = 4 : i64} : tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}

// -----

// What is reduced over the last dimension and broadcast back shares rows: one kernel.

// CHECK: func.func private @k_mul_reduce_sub_mul_0(
// CHECK-NOT: func.func private
// CHECK: func.func @rows
func.func @rows(%y: tensor<8x4xf32>, %dy: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.mul %y, %dy : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.reduce sum %0 dims = [1] {keep_dims} : tensor<8x4xf32> -> tensor<8x1xf32>
  %2 = nn.sub %dy, %1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %3 = nn.mul %2, %y : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// A sum over rows ends its kernel: what it is broadcast into needs all of it first.

// CHECK: func.func private @k_mul_reduce_0(
// CHECK: func.func private @k_sub_1(
// CHECK: func.func @columns
func.func @columns(%y: tensor<8x4xf32>, %dy: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.mul %y, %dy : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
  %2 = nn.sub %dy, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// A value of one kernel that another op needs too is a second result, computed once.

// CHECK: func.func private @k_add_relu_0({{.*}}) -> (tensor<8x4xf32>, tensor<8x4xf32>)
// CHECK: func.func @two
// CHECK: %[[R:.*]]:2 = exec.call @k_add_relu_0
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @two(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = nn.add %x, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %1 = nn.relu %0 : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Fusing %0 with %2 would put the matmul both before and after one kernel.

// CHECK: func.func private @k_relu_0(
// CHECK: func.func private @k_add_1(
// CHECK: func.func @cycle
// CHECK: %[[R:.*]] = exec.call @k_relu_0
// CHECK: %[[M:.*]] = nn.matmul %[[R]]
// CHECK: exec.call @k_add_1(%[[R]], %[[M]])
func.func @cycle(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.relu %x : tensor<4x4xf32>
  %1 = nn.matmul %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = nn.add %0, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// A large value that is cheap to recompute from what is kept anyhow is not made earlier than needed: the mask of
// a ReLU stays with the backward pass.

// CHECK: func.func private @k_relu_0(
// CHECK: func.func private @k_compare_select_1(
// CHECK: func.func @late
func.func @late(%x: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %zero = nn.constant dense<0.0> : tensor<f32>
  %0 = nn.relu %x : tensor<128x128xf32>
  %1 = nn.matmul %0, %x : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %2 = nn.compare gt %0, %zero : (tensor<128x128xf32>, tensor<f32>) -> tensor<128x128xi1>
  %3 = nn.select %2, %1, %zero : (tensor<128x128xi1>, tensor<128x128xf32>, tensor<f32>) -> tensor<128x128xf32>
  return %0, %3 : tensor<128x128xf32>, tensor<128x128xf32>
}

// -----

// Updates overwrite their argument, all readers of the old value first: the matmul moves before the update.

// CHECK: func.func private @k_sgd_update_0({{.*}}) -> tensor<4x4xf32> attributes {exec.inplace = array<i64: 0>, exec.kernel}
// CHECK: func.func @update
// CHECK: nn.matmul
// CHECK: exec.call @k_sgd_update_0
func.func @update(%w: tensor<4x4xf32> {nn.param = #nn.param<"w", init = zeros>}, %g: tensor<4x4xf32> {nn.input = #nn.input<"g", unbatched>})
    -> (tensor<4x4xf32> {nn.updates = "w"}, tensor<4x4xf32> {nn.output = "y"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %0 = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0} : tensor<4x4xf32>, tensor<f32>
  %1 = nn.matmul %w, %g : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Where a reader of the old value needs the new one, it cannot: the update gets a buffer of its own.

// CHECK: func.func private @k_sgd_update_0({{.*}}) -> tensor<4x4xf32> attributes {exec.kernel}
// CHECK: func.func @both
func.func @both(%w: tensor<4x4xf32> {nn.param = #nn.param<"w", init = zeros>}, %g: tensor<4x4xf32> {nn.input = #nn.input<"g", unbatched>})
    -> (tensor<4x4xf32> {nn.updates = "w"}, tensor<4x4xf32> {nn.output = "y"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %0 = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0} : tensor<4x4xf32>, tensor<f32>
  %1 = nn.matmul %w, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Nor where the kernel reads the old value anywhere else than it writes the new one.

// CHECK: func.func private @k_transpose_0({{.*}}) -> tensor<4x4xf32> attributes {exec.kernel}
// CHECK: func.func @transposed
func.func @transposed(%w: tensor<4x4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4x4xf32> {nn.updates = "w"}) {
  %0 = nn.transpose %w [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// Three results of one update, each in its place.

// CHECK: func.func private @k_adam_update_0({{.*}}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {exec.inplace = array<i64: 0, 2, 3>, exec.kernel}
func.func @adam(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>},
    %v: tensor<4xf32> {nn.state = #nn.state<"w.v", of = "w", init = 0.0>}, %s: tensor<i64> {nn.step}, %g: tensor<4xf32> {nn.input = #nn.input<"g", unbatched>})
    -> (tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w.m"}, tensor<4xf32> {nn.updates = "w.v"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %0:3 = nn.adam_update %w, %g, %m, %v lr = %lr step = %s {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.0} : tensor<4xf32>, tensor<f32>
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What lies in a bucket lies at any multiple of its element size, and the kernel knows.

// CHECK: func.func private @k_reduce_0(%{{.*}}: tensor<8x4xf32>) -> (tensor<4xf32> {exec.unaligned})
// CHECK: func.func private @k_sgd_update_1(%{{.*}}: tensor<2x2xf32>, %{{.*}}: tensor<2x2xf32> {exec.unaligned})
func.func @bucket(%w: tensor<2x2xf32> {nn.param = #nn.param<"w", init = zeros>}, %x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<2x2xf32> {nn.updates = "w"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %0 = nn.reduce sum %x dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
  %1 = nn.reshape %0 : tensor<4xf32> -> tensor<2x2xf32>
  %2 = dist.pack %1[0:4] group 0 at 0 : (tensor<2x2xf32>) -> tensor<4xf32>
  %3 = dist.unpack %2[0:4] : (tensor<4xf32>) -> tensor<2x2xf32>
  %4 = nn.sgd_update %w, %3 lr = %lr {weight_decay = 0.0} : tensor<2x2xf32>, tensor<f32>
  return %4 : tensor<2x2xf32>
}

// -----

// A constant that no kernel uses is written to memory by one of its own.

// CHECK: func.func private @k_broadcast_0() -> tensor<2x2xf32>
// CHECK: func.func @constant
// CHECK: %[[C:.*]] = exec.call @k_broadcast_0()
// CHECK: nn.matmul %{{.*}}, %[[C]]
func.func @constant(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = nn.constant dense<1.0> : tensor<2x2xf32>
  %1 = nn.matmul %x, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// Behind the last collective, the update of what was reduced first comes first, whatever the program's order.

dist.mesh @mesh <["data"=2]>
// CHECK: func.func @order
// CHECK: %[[B:.*]] = dist.all_reduce {"data"} sum %arg3
// CHECK: %[[W:.*]] = dist.all_reduce {"data"} sum %arg2
// CHECK: exec.call @k_sgd_update_0(%arg1, %[[B]])
// CHECK: exec.call @k_sgd_update_1(%arg0, %[[W]])
func.func @order(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %b: tensor<2xf32> {nn.param = #nn.param<"b", init = zeros>},
    %gw: tensor<4xf32> {nn.input = #nn.input<"gw", unbatched>}, %gb: tensor<2xf32> {nn.input = #nn.input<"gb", unbatched>})
    -> (tensor<4xf32> {nn.updates = "w"}, tensor<2xf32> {nn.updates = "b"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %rb = dist.all_reduce {"data"} sum %gb : tensor<2xf32>
  %rw = dist.all_reduce {"data"} sum %gw : tensor<4xf32>
  %0 = nn.sgd_update %w, %rw lr = %lr {weight_decay = 0.0} : tensor<4xf32>, tensor<f32>
  %1 = nn.sgd_update %b, %rb lr = %lr {weight_decay = 0.0} : tensor<2xf32>, tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<2xf32>
}

// -----

// Two parameters of which one takes over the other's old value: that one is not overwritten before the step ends.

// CHECK: func.func private @k_neg_0(%{{.*}}: tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
// CHECK: func.func @shift
func.func @shift(%a: tensor<2xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<2xf32> {nn.param = #nn.param<"b", init = zeros>})
    -> (tensor<2xf32> {nn.updates = "a"}, tensor<2xf32> {nn.updates = "b"}) {
  %0 = nn.neg %b : tensor<2xf32>
  return %b, %0 : tensor<2xf32>, tensor<2xf32>
}

// -----

// A kernel that reads its argument in a second shape reads it elsewhere than it writes.

// CHECK: func.func private @k_add_0({{.*}}) -> tensor<4x1xf32> attributes {exec.kernel}
// CHECK: func.func @reshaped
func.func @reshaped(%w: tensor<4x1xf32> {nn.param = #nn.param<"w", init = zeros>}, %s: tensor<1x1xf32> {nn.param = #nn.param<"s", init = zeros>})
    -> (tensor<4x1xf32> {nn.updates = "w"}) {
  %0 = nn.reshape %w : tensor<4x1xf32> -> tensor<1x4xf32>
  %1 = nn.reshape %0 : tensor<1x4xf32> -> tensor<4x1xf32>
  %2 = nn.add %w, %1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %2 : tensor<4x1xf32>
}

// -----

// A constant that an op in a region uses stays one: regions are not outlined.
// CHECK-LABEL: func.func @region
// CHECK: %[[C:.*]] = exec.call @k_broadcast
// CHECK: scf.for
// CHECK: nn.add %{{.*}}, %[[C]]
func.func @region(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %c = nn.constant dense<1.0> : tensor<4xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %k = %zero to %one step %one iter_args(%v = %x) -> tensor<4xf32> {
    %1 = nn.add %v, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Training and evaluation of a module have common kernels where they compute the same.
// CHECK: func.func private @[[RELU:k_relu_[0-9]+]]
// CHECK-NOT: func.func private @k_relu
// CHECK: func.func @step
// CHECK: exec.call @[[RELU]]
// CHECK: func.func @step_eval
// CHECK: exec.call @[[RELU]]
func.func @step(%x: tensor<8xf32> {nn.input = "x"}, %w: tensor<8x8xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<8x8xf32> {nn.grad = "w"}) {
  %0 = nn.relu %w : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func @step_eval(%w: tensor<8x8xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<8x8xf32> {nn.output = "y"}) attributes {nn.evaluation} {
  %0 = nn.relu %w : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// A norm's statistics are one number per row and its rows are whole: what comes before and behind is in its kernel.

// CHECK: func.func private @k_add_layer_norm_gelu_0({{.*}}) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>)
// CHECK-NOT: func.func private
// CHECK: func.func @norm
func.func @norm(%x: tensor<8x4xf32>, %r: tensor<8x4xf32>, %p: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>) {
  %0 = nn.add %x, %r : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %y, %mean, %rstd = nn.layer_norm %0, %p, %p eps = 1.0e-5 : tensor<8x4xf32>, tensor<4xf32>
  %1 = nn.gelu tanh %y : tensor<8x4xf32>
  return %0, %mean, %rstd, %1 : tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>
}

// -----

// Equal layers with dropout are one kernel: ids move into the upper words of steps, 2 and 7 times 2^32, which one kernel computes. The gradient has
// its op's id.

// CHECK: func.func private @[[IDS:k_add_[0-9]+]](%[[STEP:.*]]: tensor<i64>) -> (tensor<i64>, tensor<i64>)
// CHECK-DAG: nn.constant dense<8589934592> : tensor<i64>
// CHECK-DAG: nn.constant dense<21474836480> : tensor<i64>
// CHECK: func.func private @[[DROP:k_relu_dropout_[0-9]+]]
// CHECK: nn.dropout {{.*}} id = 0 seed
// CHECK: func.func private @[[GRAD:k_dropout_[0-9]+]]
// CHECK-NOT: func.func private
// CHECK: func.func @layers(
// CHECK-SAME: %[[SEED:[a-z0-9]+]]: tensor<i64> {nn.seed}, %[[T:[a-z0-9]+]]: tensor<i64> {nn.step}
// CHECK: %[[AT:.*]]:2 = exec.call @[[IDS]](%[[T]])
// CHECK: exec.call @[[DROP]](%{{.*}}, %[[SEED]], %[[AT]]#0)
// CHECK: exec.call @[[DROP]](%{{.*}}, %[[SEED]], %[[AT]]#1)
// CHECK: exec.call @[[GRAD]](%{{.*}}, %[[SEED]], %[[AT]]#0)
func.func @layers(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %w: tensor<4x4xf32>, %seed: tensor<i64> {nn.seed}, %step: tensor<i64> {nn.step})
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = nn.relu %x : tensor<8x4xf32>
  %1 = nn.dropout %0 rate = 0.5 id = 2 seed = %seed step = %step : tensor<8x4xf32>
  %2 = nn.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.relu %2 : tensor<8x4xf32>
  %4 = nn.dropout %3 rate = 0.5 id = 7 seed = %seed step = %step : tensor<8x4xf32>
  %5 = nn.dropout %y rate = 0.5 id = 2 seed = %seed step = %step : tensor<8x4xf32>
  return %4, %5 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// One id stays where it is.

// CHECK: func.func private @k_dropout_0
// CHECK: nn.dropout {{.*}} id = 3 seed
// CHECK-NOT: func.func private
// CHECK: func.func @alone
func.func @alone(%x: tensor<8x4xf32>, %seed: tensor<i64> {nn.seed}, %step: tensor<i64> {nn.step}) -> tensor<8x4xf32> {
  %0 = nn.dropout %x rate = 0.5 id = 3 seed = %seed step = %step : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// A kernel that reads a value of bf16 as f32 widens it itself: what lives from one kernel to the next is narrow.

// CHECK: func.func private @k_cast_exp_0(%[[A:.*]]: tensor<8x4xbf16>) -> tensor<8x4xf32> attributes {exec.kernel} {
// CHECK: func.func private @k_mul_1(%{{.*}}: tensor<8x4xf32>, %[[B:.*]]: tensor<8x4xbf16>) -> tensor<8x4xf32> attributes {exec.kernel} {
// CHECK-NEXT: %[[WIDE:.*]] = nn.cast %[[B]] : tensor<8x4xbf16> -> tensor<8x4xf32>
// CHECK-LABEL: func.func @widened
// CHECK-SAME: %[[X:.*]]: tensor<8x4xbf16>
// CHECK: %[[E:.*]] = exec.call @k_cast_exp_0(%[[X]])
// CHECK: %[[P:.*]] = nn.matmul %[[E]]
// CHECK: exec.call @k_mul_1(%[[P]], %[[X]])
func.func @widened(%x: tensor<8x4xbf16> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.input = #nn.input<"w", unbatched>}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %0 = nn.cast %x : tensor<8x4xbf16> -> tensor<8x4xf32>
  %1 = nn.exp %0 : tensor<8x4xf32>
  %2 = nn.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.mul %2, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// So does one that reads it where it was widened in the kernel that made it.

// CHECK: func.func private @k_relu_cast_exp_{{[0-9]+}}(%{{.*}}: tensor<8x4xbf16>) -> (tensor<8x4xbf16>, tensor<8x4xf32>)
// CHECK-LABEL: func.func @made
// CHECK: %[[E:.*]]:2 = exec.call @k_relu_cast_exp_
// CHECK: %[[P:.*]] = nn.matmul %[[E]]#1
// CHECK: exec.call @k_mul_{{[0-9]+}}(%[[P]], %[[E]]#0)
func.func @made(%x: tensor<8x4xbf16> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.input = #nn.input<"w", unbatched>}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %r = nn.relu %x : tensor<8x4xbf16>
  %0 = nn.cast %r : tensor<8x4xbf16> -> tensor<8x4xf32>
  %1 = nn.exp %0 : tensor<8x4xf32>
  %2 = nn.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.mul %2, %0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// What is counted as something of its own is written by a kernel of its own, though one reader could make it.

// CHECK-LABEL: func.func @copy
// CHECK: %[[COPY:.*]] = exec.call @k_cast_
// CHECK: exec.call @k_cast_exp_{{.*}}(%[[COPY]])
func.func @copy(%w: tensor<8x4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %0 = nn.cast %w {exec.class = "param"} : tensor<8x4xf32> -> tensor<8x4xbf16>
  %1 = nn.cast %0 : tensor<8x4xbf16> -> tensor<8x4xf32>
  %2 = nn.exp %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// What is computed again for the backward pass runs there, in the kernel of the forward pass only in so far as that is called
// a second time; with its readers it may be one.

// CHECK: func.func private @k_add_tanh_0({{.*}}) -> (tensor<8x4xf32>, tensor<8x4xf32>)
// CHECK: func.func private @k_tanh_mul_1(
// CHECK: func.func @again
// CHECK: %[[K:.*]]:2 = exec.call @k_add_tanh_0
// CHECK: %[[M:.*]] = nn.matmul %[[K]]#1
// CHECK: exec.call @k_tanh_mul_1(%[[K]]#0, %[[M]])
func.func @again(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.add %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = nn.tanh %0 : tensor<8x4xf32>
  %2 = nn.matmul %1, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.tanh %0 {nn.recompute} : tensor<8x4xf32>
  %4 = nn.mul %3, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// -----

// A product that is one more term of a sum over micro-batches is added where the sum lies; a kernel that adds another term
// overwrites it.
// CHECK: func.func private @k_add_1(%{{.*}}: tensor<3xf32>, %{{.*}}: tensor<3xf32>) -> tensor<3xf32> attributes {exec.inplace = array<i64: 0>, exec.kernel}
// CHECK-LABEL: func.func @running
// CHECK-DAG: %[[W0:.*]] = nn.matmul %arg0, %arg1
// CHECK-DAG: %[[B0:.*]] = exec.call @[[REDUCE:k_reduce.*]](%arg1)
// CHECK-DAG: %[[W1:.*]] = nn.matmul %arg2, %arg3
// CHECK-DAG: %[[W:.*]] = exec.add_to %[[W0]], %[[W1]] : tensor<4x3xf32>
// CHECK-DAG: %[[B1:.*]] = exec.call @[[REDUCE]](%arg3)
// CHECK-DAG: %[[B:.*]] = exec.call @k_add{{.*}}(%[[B0]], %[[B1]])
// CHECK: return %[[W]], %[[B]]
func.func @running(%a: tensor<8x4xf32> {nn.input = "a"}, %b: tensor<8x3xf32> {nn.input = "b"}, %c: tensor<8x4xf32> {nn.input = "c"},
                   %d: tensor<8x3xf32> {nn.input = "d"}) -> (tensor<4x3xf32> {nn.output = "w"}, tensor<3xf32> {nn.output = "v"}) {
  %0 = nn.matmul %a, %b {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %1 = nn.reduce sum %b dims = [0] : tensor<8x3xf32> -> tensor<3xf32>
  %2 = nn.matmul %c, %d {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %3 = nn.add %0, %2 {dist.running_sum} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = nn.reduce sum %d dims = [0] : tensor<8x3xf32> -> tensor<3xf32>
  %5 = nn.add %1, %4 {dist.running_sum} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %3, %5 : tensor<4x3xf32>, tensor<3xf32>
}

// -----

// The sum that a product is added to is made by a kernel of several ops: the product still runs behind it.
// CHECK-LABEL: func.func @behind_fused
// CHECK-DAG: %[[A:.*]] = nn.matmul %arg0, %arg1
// CHECK-DAG: %[[B:.*]] = nn.matmul %arg2, %arg3
// CHECK: %[[SUM:.*]] = exec.call @{{.*}}(%[[A]], %[[B]])
// CHECK: %[[C:.*]] = nn.matmul %arg0, %arg3
// CHECK: %[[W:.*]] = exec.add_to %[[SUM]], %[[C]]
// CHECK: return %[[W]]
func.func @behind_fused(%a: tensor<8x4xf32> {nn.input = "a"}, %b: tensor<8x3xf32> {nn.input = "b"}, %c: tensor<8x4xf32> {nn.input = "c"},
                        %d: tensor<8x3xf32> {nn.input = "d"}) -> (tensor<4x3xf32> {nn.output = "w"}) {
  %0 = nn.matmul %a, %b {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %1 = nn.matmul %c, %d {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %2 = nn.tanh %0 : tensor<4x3xf32>
  %3 = nn.add %2, %1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = nn.matmul %a, %d {transpose_a} : (tensor<8x4xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  %5 = nn.add %3, %4 {dist.running_sum} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %5 : tensor<4x3xf32>
}

// -----

// A view has no buffer of its own: what is added to one is not added to what it shows.
// CHECK-LABEL: func.func @to_views
// CHECK-NOT: exec.add_to
// CHECK: return
func.func @to_views(%a: tensor<2x2xf32> {nn.input = "a"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = ones>},
                    %b: tensor<8xf32> {nn.param = #nn.param<"b", init = ones>}) -> (tensor<2x2xf32> {nn.output = "s"}, tensor<2x2xf32> {nn.output = "v"}) {
  %r = nn.reshape %w : tensor<4xf32> -> tensor<2x2xf32>
  %m = nn.matmul %a, %a : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %s = nn.add %r, %m {dist.running_sum} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %u = dist.unpack %b[4:8] : (tensor<8xf32>) -> tensor<2x2xf32>
  %n = nn.matmul %a, %a {transpose_a} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %v = nn.add %u, %n {dist.running_sum} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %s, %v : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// A kernel is of ops of the same mesh positions, which its call names; what is equal is one kernel wherever it runs. A
// constant is stored where somebody sends it.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: func.func @positions
// CHECK: exec.call @k_broadcast_{{[0-9]+}}() {dist.at = array<i64: 0>}
// CHECK: %[[A:.*]] = exec.call @k_exp_{{[0-9]+}}(%arg0) : (tensor<16xf32>)
// CHECK: exec.call @[[NEG:k_neg_tanh_[0-9]+]](%[[A]]) {dist.at = array<i64: 0>}
// CHECK: exec.call @[[NEG]](%[[A]]) {dist.at = array<i64: 1>}
// CHECK: exec.call @k_mul_{{[0-9]+}}({{.*}}) {dist.at = array<i64: 1>}
func.func @positions(%x: tensor<16xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<16xf32> {nn.output = "y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %c = nn.constant dense<2.0> : tensor<16xf32>
  %a = nn.exp %x : tensor<16xf32>
  %b = nn.neg %a {dist.at = array<i64: 0>} : tensor<16xf32>
  %d = nn.tanh %b {dist.at = array<i64: 0>} : tensor<16xf32>
  dist.send {"pipe"} %d to %one {dist.at = array<i64: 0>} : tensor<16xf32>
  dist.send {"pipe"} %c to %one {dist.at = array<i64: 0>} : tensor<16xf32>
  %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<16xf32>
  %s = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<16xf32>
  %e = nn.neg %a {dist.at = array<i64: 1>} : tensor<16xf32>
  %g = nn.tanh %e {dist.at = array<i64: 1>} : tensor<16xf32>
  dist.send {"pipe"} %g to %zero {dist.at = array<i64: 1>} : tensor<16xf32>
  %t = dist.recv {"pipe"} from %one {dist.at = array<i64: 0>} : tensor<16xf32>
  %i = nn.mul %s, %r {dist.at = array<i64: 1>} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %i : tensor<16xf32>
}

// -----

// A kernel is part of one action of a pipeline's schedule; what is of none is fused with any.

// CHECK-LABEL: func.func @actions
// CHECK: exec.call @k_relu_tanh_{{[0-9]+}}(%{{.*}}) {exec.scope = "F0@0"}
// CHECK: exec.call @k_relu_{{[0-9]+}}(%{{.*}}) {exec.scope = "B0@0"}
// CHECK-NOT: exec.call
func.func @actions(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.relu %a {exec.scope = "F0@0"} : tensor<8x4xf32>
  %1 = nn.tanh %0 : tensor<8x4xf32>
  %2 = nn.relu %1 {exec.scope = "B0@0"} : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// -----

// Dropout reads positions anywhere, as a table, and is fused with what makes and reads the rows; the positions are made
// by another kernel.

// CHECK: func.func private @[[MAKE:k_add_[0-9]+]](%{{.*}}: tensor<8xi64>) -> tensor<8xi64>
// CHECK: func.func private @[[DROP:k_relu_dropout_add_[0-9]+]](%{{.*}}: tensor<8x4xf32>, {{.*}}: tensor<8xi64>
// CHECK-NOT: func.func private
// CHECK: func.func @positions
// CHECK: %[[P:.*]] = exec.call @[[MAKE]]
// CHECK: exec.call @[[DROP]]({{.*}}%[[P]]
func.func @positions(%x: tensor<8x4xf32>, %p: tensor<8xi64>, %seed: tensor<i64> {nn.seed}, %step: tensor<i64> {nn.step}) -> tensor<8x4xf32> {
  %0 = nn.add %p, %p : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
  %1 = nn.relu %x : tensor<8x4xf32>
  %2 = nn.dropout %1 rate = 0.5 id = 3 seed = %seed step = %step positions = %0 dim = 0 : tensor<8x4xf32>, tensor<8xi64>
  %3 = nn.add %2, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// Two merges of attention are one kernel, with what follows them: rows of log-sum-exps are read where they are made.

// CHECK: func.func private @[[MERGE:k_merge_attention_cast_[0-9]+]](
// CHECK-NOT: func.func private
// CHECK: func.func @merges
// CHECK: exec.call @[[MERGE]]
// CHECK-NOT: exec.call
func.func @merges(%o0: tensor<2x3x4xf32>, %l0: tensor<2x3xf32>, %o1: tensor<2x3x4xf32>, %l1: tensor<2x3xf32>, %o2: tensor<2x3x4xf32>, %l2: tensor<2x3xf32>)
    -> (tensor<2x3x4xbf16>, tensor<2x3xf32>) {
  %0:2 = nn.merge_attention %o0, %l0, %o1, %l1 : tensor<2x3x4xf32>
  %1:2 = nn.merge_attention %0#0, %0#1, %o2, %l2 : tensor<2x3x4xf32>
  %2 = nn.cast %1#0 : tensor<2x3x4xf32> -> tensor<2x3x4xbf16>
  return %2, %1#1 : tensor<2x3x4xbf16>, tensor<2x3xf32>
}

// -----

// Steps of a ring: what a sum needs before the next message arrives does not wait for it, or the terms of all steps would
// be kept for one kernel. Behind the last message it is one with what reads it.
dist.mesh @mesh <["context"=3]>
// CHECK-LABEL: func.func @steps
// CHECK: %[[T0:.*]] = nn.matmul
// CHECK: dist.wait
// CHECK: %[[T1:.*]] = nn.matmul
// CHECK: %[[S1:.*]] = exec.call @k_add_{{[0-9]+}}(%[[T0]], %[[T1]])
// CHECK: dist.wait
// CHECK: %[[T2:.*]] = nn.matmul
// CHECK: exec.call @k_add_relu_{{[0-9]+}}(%[[S1]], %[[T2]])
func.func @steps(%q: tensor<64x32xf32> {nn.input = #nn.input<"q", unbatched>}, %k: tensor<32x32xf32> {nn.input = #nn.input<"k", unbatched>})
    -> (tensor<64x32xf32> {nn.output = "o"}) {
  %f1 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %k : tensor<32x32xf32> -> !dist.future<tensor<32x32xf32>>
  %t0 = nn.matmul %q, %k : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %k1 = dist.wait %f1 : !dist.future<tensor<32x32xf32>> -> tensor<32x32xf32>
  %f2 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %k1 : tensor<32x32xf32> -> !dist.future<tensor<32x32xf32>>
  %t1 = nn.matmul %q, %k1 : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %s1 = nn.add %t0, %t1 : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %k2 = dist.wait %f2 : !dist.future<tensor<32x32xf32>> -> tensor<32x32xf32>
  %t2 = nn.matmul %q, %k2 : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  %s2 = nn.add %s1, %t2 : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %o = nn.relu %s2 : tensor<64x32xf32>
  return %o : tensor<64x32xf32>
}
