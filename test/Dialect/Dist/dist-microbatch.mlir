// RUN: shoal-opt %s --split-input-file --dist-microbatch=count=2 | FileCheck %s -enable-var-scope
// RUN: shoal-opt %s --split-input-file --dist-microbatch=count=4 | FileCheck %s --check-prefix=FOUR -enable-var-scope

// Rows of the batch are dimension 1, behind the micro-batches, with their sharding. A sum over rows is what the region
// yields; what is linear in it stays inside, what is not reads the whole sum.
dist.mesh @mesh <["data"=2]>
// CHECK-LABEL: func.func @sums
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"data"}, {}]>, nn.batch_rows = 6 : i64, nn.input = "x"}
// FOUR-LABEL: func.func @sums
// FOUR-SAME: tensor<4x2x4xf32>
func.func @sums(%x: tensor<6x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<4x3xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<4x3xf32> {nn.output = "g"}, tensor<4x3xf32> {nn.output = "r"}) {
  // CHECK: %[[M:.*]] = nn.iota dim = 0 : tensor<2xi64>
  // CHECK: %[[SUM:.*]] = dist.accumulate(%[[X]], %[[M]]) microbatches = 2
  // CHECK: ^bb0(%[[PART:.*]]: tensor<1x3x4xf32>, %{{.*}}: tensor<1xi64>):
  // CHECK: %[[ROWS:.*]] = nn.reshape %[[PART]] : tensor<1x3x4xf32> -> tensor<3x4xf32>
  // CHECK: %[[Y:.*]] = nn.matmul %[[ROWS]], %{{.*}} {nn.layer = "h.0"}
  // CHECK: %[[G:.*]] = nn.matmul %[[ROWS]], %[[Y]] {transpose_a}
  // CHECK: %[[N:.*]] = nn.neg %[[G]]
  // CHECK: dist.yield %[[N]] : tensor<4x3xf32>
  %y = nn.matmul %x, %w {nn.layer = "h.0"} : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  %g = nn.matmul %x, %y {transpose_a} : (tensor<6x4xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  %n = nn.neg %g : tensor<4x3xf32>
  // CHECK: %[[R:.*]] = nn.relu %[[SUM]]
  // CHECK: return %[[SUM]], %[[R]]
  %r = nn.relu %n : tensor<4x3xf32>
  return %n, %r : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// The count of what is not ignored needs no parameter: it is summed before, for all micro-batches. A mask counts its rows
// in the whole batch.
// CHECK-LABEL: func.func @counts
// CHECK: %[[COUNT:.*]] = dist.accumulate(%[[Y:[^,]*]], %{{.*}}) microbatches = 2 {
// CHECK: %[[MASKED:.*]] = nn.mask %{{.*}} dim = 0 limit = %[[VALID:.*]] offset = %{{.*}} fill = 0.0
// CHECK: nn.reduce sum %[[MASKED]]
// CHECK: %[[ATLEAST:.*]] = nn.maximum %[[COUNT]], %{{.*}}
// CHECK: dist.accumulate(%[[Y]], %{{.*}}, %{{.*}}) microbatches = 2 {
// CHECK: ^bb0(%{{.*}}: tensor<1x4xf32>, %{{.*}}: tensor<1x4x4xf32>, %[[MICRO:.*]]: tensor<1xi64>):
// CHECK: %[[INDEX:.*]] = nn.reshape %[[MICRO]] : tensor<1xi64> -> tensor<i64>
// CHECK: %[[PART:.*]] = nn.constant dense<4> : tensor<i64>
// CHECK: %[[OFFSET:.*]] = nn.mul %[[INDEX]], %[[PART]]
// CHECK: nn.mask %{{.*}} dim = 0 limit = %[[VALID]] offset = %[[OFFSET]] fill = 0.0
// CHECK: nn.div %{{.*}}, %[[ATLEAST]]
// CHECK-NOT: dist.accumulate
// CHECK: return
func.func @counts(%x: tensor<8x4xf32> {nn.input = "x"}, %y: tensor<8xf32> {nn.input = "y"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>},
                  %valid: tensor<i64> {nn.valid_rows}) -> (tensor<f32> {nn.loss}) {
  %one = nn.constant dense<1.0> : tensor<f32>
  %m = nn.mask %y dim = 0 limit = %valid fill = 0.0 : tensor<8xf32>
  %count = nn.reduce sum %m dims = [0] : tensor<8xf32> -> tensor<f32>
  %most = nn.maximum %count, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %p = nn.mul %x, %w : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %s = nn.reduce sum %p dims = [1] : tensor<8x4xf32> -> tensor<8xf32>
  %t = nn.mul %s, %m : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %sum = nn.reduce sum %t dims = [0] : tensor<8xf32> -> tensor<f32>
  %loss = nn.div %sum, %most : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What a gradient broadcasts has rows because of what it meets. Rows that do not divide are rounded up.
// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: tensor<2x4x2xf32> {nn.batch_rows = 7 : i64
// CHECK: nn.broadcast %{{.*}} : tensor<f32> -> tensor<4x2xf32>
// FOUR-LABEL: func.func @broadcast
// FOUR: nn.broadcast %{{.*}} : tensor<f32> -> tensor<2x2xf32>
func.func @broadcast(%x: tensor<7x2xf32> {nn.input = "x"}, %c: tensor<f32> {nn.param = #nn.param<"c", init = zeros>}) -> (tensor<2xf32> {nn.output = "s"}) {
  %b = nn.broadcast %c : tensor<f32> -> tensor<7x2xf32>
  %p = nn.mul %b, %x : (tensor<7x2xf32>, tensor<7x2xf32>) -> tensor<7x2xf32>
  %s = nn.reduce sum %p dims = [0] : tensor<7x2xf32> -> tensor<2xf32>
  return %s : tensor<2xf32>
}

// -----

// A constant with a value for each row is whole in each micro-batch, which reads its part. Where micro-batches do not divide the rows
// the last value is repeated, so that what a user divides by is not 0.
// CHECK-LABEL: func.func @weighted
// CHECK: ^bb0(%{{.*}}: tensor<1x3x4xf32>, %[[MICRO:.*]]: tensor<1xi64>):
// CHECK: %[[INDEX:.*]] = nn.reshape %[[MICRO]] : tensor<1xi64> -> tensor<i64>
// CHECK: %[[PART:.*]] = nn.constant dense<3> : tensor<i64>
// CHECK: %[[OFFSET:.*]] = nn.mul %[[INDEX]], %[[PART]]
// CHECK: %[[ALL:.*]] = nn.constant dense<{{\[}}[1.000000e+00], [2.000000e+00], [3.000000e+00], [4.000000e+00], [5.000000e+00], [5.000000e+00]]> : tensor<6x1xf32>
// CHECK: %[[OWN:.*]] = nn.dynamic_slice %[[ALL]] dim = 0 start = %[[OFFSET]] : tensor<6x1xf32> -> tensor<3x1xf32>
// CHECK: nn.div %{{.*}}, %[[OWN]]
func.func @weighted(%x: tensor<5x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %c = nn.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0]]> : tensor<5x1xf32>
  %0 = nn.div %x, %c : (tensor<5x4xf32>, tensor<5x1xf32>) -> tensor<5x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<5x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Where a repeated op draws is one number, which is not repeated.
// CHECK-LABEL: func.func @repeated
// CHECK: %[[AT:.*]] = nn.mul %{{.*}}, %{{.*}} {nn.layer = "h.0"} : (tensor<i64>, tensor<i64>) -> tensor<i64>
// CHECK: nn.dropout %{{.*}} offset = %[[AT]] global = [6, 4] {nn.layer = "h.0", nn.recompute}
func.func @repeated(%x: tensor<6x4xf32> {nn.input = "x"}, %seed: tensor<i64> {nn.seed}, %step: tensor<i64> {nn.step})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.dropout %x rate = 0.5 id = 1 seed = %seed step = %step {nn.layer = "h.0", nn.recompute} : tensor<6x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
