// RUN: shoal-opt %s --nn-seed -split-input-file | FileCheck %s -enable-var-scope

// A model gets its seed and its step, once for all of its random ops.
// CHECK-LABEL: func.func @model
// CHECK-SAME: %[[SEED:[^:]*]]: tensor<i64> {nn.seed}, %[[STEP:[^:]*]]: tensor<i64> {nn.step})
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 0 seed = %[[SEED]] step = %[[STEP]] : tensor<8x4xf32>
// CHECK: nn.dropout %{{.*}} rate = 5.000000e-01 id = 7 seed = %[[SEED]] step = %[[STEP]] : tensor<8x4xf32>
func.func @model(%x: tensor<8x4xf32> {nn.input = "x"}) -> (tensor<8x4xf32> {nn.output = "y"}) {
  %0 = nn.dropout %x rate = 0.1 id = 0 : tensor<8x4xf32>
  %1 = nn.dropout %0 rate = 0.5 id = 7 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A step that is there is used; what has its seed keeps it.
// CHECK-LABEL: func.func @own
// CHECK-SAME: (%{{[^:]*}}: tensor<8xf32> {nn.input = "x"}, %[[STEP:[^:]*]]: tensor<i64> {nn.step}, %[[MINE:[^:]*]]: tensor<i64> {nn.input = #nn.input<"s", unbatched>}, %[[SEED:[^:]*]]: tensor<i64> {nn.seed})
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 0 seed = %[[MINE]] step = %[[STEP]]
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 0 seed = %[[SEED]] step = %[[STEP]]
func.func @own(%x: tensor<8xf32> {nn.input = "x"}, %t: tensor<i64> {nn.step}, %s: tensor<i64> {nn.input = #nn.input<"s", unbatched>})
    -> (tensor<8xf32> {nn.output = "y"}) {
  %0 = nn.dropout %x rate = 0.1 id = 0 seed = %s step = %t : tensor<8xf32>
  %1 = nn.dropout %0 rate = 0.1 id = 0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Where nothing is random there is no seed.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: nn.seed
func.func @plain(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<8xf32> {nn.output = "y"}) {
  %0 = nn.relu %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Micro-batches draw for their rows of the whole batch, also where rows lie in another dimension; what does not hang on
// the micro-batch is drawn once.
// CHECK-LABEL: func.func @accumulate
// CHECK: %[[NUMBERS:.*]] = nn.iota dim = 0 : tensor<3xi64>
// CHECK: dist.accumulate(%{{.*}}, %[[NUMBERS]]) microbatches = 3 {
// CHECK: ^bb0(%[[X:.*]]: tensor<2x5xf32>, %[[M:.*]]: tensor<1xi64>):
// CHECK: %[[TEN:.*]] = nn.constant dense<10> : tensor<i64>
// CHECK: %[[NUMBER:.*]] = nn.reshape %[[M]] : tensor<1xi64> -> tensor<i64>
// CHECK: %[[OFFSET:.*]] = nn.mul %[[NUMBER]], %[[TEN]]
// CHECK: nn.dropout %[[X]] rate = 1.000000e-01 id = 0 seed = %{{.*}} step = %{{.*}} offset = %[[OFFSET]] global = [6, 5]
// CHECK: %[[TWO:.*]] = nn.constant dense<2> : tensor<i64>
// CHECK: %[[COLUMNS:.*]] = nn.mul %{{.*}}, %[[TWO]]
// CHECK: nn.dropout %{{.*}} offset = %[[COLUMNS]] global = [5, 6]
// CHECK: nn.dropout %{{.*}} rate = 1.000000e-01 id = 2 seed = %{{[^ ]*}} step = %{{[^ ]*}} : tensor<5x2xf32>
func.func @accumulate(%x: tensor<6x5xf32> {nn.input = #nn.input<"x", unbatched>}, %w: tensor<5x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<5x2xf32> {nn.output = "y"}) {
  %0 = dist.accumulate(%x) microbatches = 3 {
  ^bb0(%xm: tensor<2x5xf32>):
    %1 = nn.dropout %xm rate = 0.1 id = 0 : tensor<2x5xf32>
    %2 = nn.transpose %1 [1, 0] : tensor<2x5xf32> -> tensor<5x2xf32>
    %3 = nn.dropout %2 rate = 0.1 id = 1 : tensor<5x2xf32>
    %4 = nn.dropout %w rate = 0.1 id = 2 : tensor<5x2xf32>
    %5 = nn.add %3, %4 : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
    dist.yield %5 : tensor<5x2xf32>
  } : (tensor<6x5xf32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}
