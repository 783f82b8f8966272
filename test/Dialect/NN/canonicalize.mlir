// RUN: shoal-opt %s --canonicalize | FileCheck %s

// Ops that change nothing go away.
// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @identities(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = nn.reshape %x : tensor<6x4xf32> -> tensor<6x4xf32>
  %1 = nn.transpose %x [0, 1] : tensor<6x4xf32> -> tensor<6x4xf32>
  %2 = nn.broadcast %x : tensor<6x4xf32> -> tensor<6x4xf32>
  %3 = nn.cast %x : tensor<6x4xf32> -> tensor<6x4xf32>
  return %0, %1, %2, %3 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}

// Two reshapes are one, and none when they undo each other.
// CHECK-LABEL: func.func @reshapes
// CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32>)
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[X]] : tensor<6x4xf32> -> tensor<2x12xf32>
// CHECK-NEXT: return %[[R]], %[[X]]
func.func @reshapes(%x: tensor<6x4xf32>) -> (tensor<2x12xf32>, tensor<6x4xf32>) {
  %0 = nn.reshape %x : tensor<6x4xf32> -> tensor<24xf32>
  %1 = nn.reshape %0 : tensor<24xf32> -> tensor<2x12xf32>
  %2 = nn.reshape %0 : tensor<24xf32> -> tensor<6x4xf32>
  return %1, %2 : tensor<2x12xf32>, tensor<6x4xf32>
}

// Transposes compose: dimension i of the result is dimension p[q[i]] of the input.
// CHECK-LABEL: func.func @transposes
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT: nn.transpose %[[X]] [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
// CHECK-NEXT: return
func.func @transposes(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
  %0 = nn.transpose %x [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = nn.transpose %0 [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  return %1 : tensor<4x3x2xf32>
}

// Broadcasts compose.
// CHECK-LABEL: func.func @broadcasts
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: nn.broadcast %[[X]] : tensor<4xf32> -> tensor<2x3x4xf32>
// CHECK-NEXT: return
func.func @broadcasts(%x: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %0 = nn.broadcast %x : tensor<4xf32> -> tensor<3x4xf32>
  %1 = nn.broadcast %0 : tensor<3x4xf32> -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// Splats go through ops that move or convert elements.
// CHECK-LABEL: func.func @splats
// CHECK-DAG: %[[A:.*]] = nn.constant dense<2.000000e+00> : tensor<3x2xf64>
// CHECK-DAG: %[[B:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: %[[C:.*]] = nn.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi64>
// CHECK: return %[[A]], %[[B]], %[[C]]
func.func @splats() -> (tensor<3x2xf64>, tensor<f32>, tensor<2x2xi64>) {
  %0 = nn.constant dense<2.0> : tensor<1xf32>
  %1 = nn.broadcast %0 : tensor<1xf32> -> tensor<2x3x1xf32>
  %2 = nn.transpose %1 [1, 0, 2] : tensor<2x3x1xf32> -> tensor<3x2x1xf32>
  %3 = nn.reshape %2 : tensor<3x2x1xf32> -> tensor<3x2xf32>
  %4 = nn.cast %3 : tensor<3x2xf32> -> tensor<3x2xf64>
  %5 = nn.constant dense<true> : tensor<i1>
  %6 = nn.cast %5 : tensor<i1> -> tensor<f32>
  %7 = nn.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %8 = nn.reshape %7 : tensor<4xi64> -> tensor<2x2xi64>
  return %4, %6, %8 : tensor<3x2xf64>, tensor<f32>, tensor<2x2xi64>
}

// rope becomes a table and rotations of pairs; what is said of it is said of the value that takes its place. Equal tables
// are equal ops, which is all that CSE needs to make them one for all layers and directions.
// CHECK-LABEL: func.func @rope
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x3x6xf32>, %[[P:.*]]: tensor<8xi64>)
// CHECK: %[[COS:.*]], %[[SIN:.*]] = nn.rope_table %[[P]] base = 1.000000e+04 : tensor<8xi64> -> tensor<8x3xf32>
// CHECK: %[[PAIRS:.*]] = nn.reshape %[[X]] {nn.layer = "h.0"} : tensor<2x8x3x6xf32> -> tensor<2x8x3x2x3xf32>
// CHECK: %[[T:.*]] = nn.rotate %[[PAIRS]], %[[COS]], %[[SIN]] {inverse, nn.layer = "h.0"} : tensor<2x8x3x2x3xf32>, tensor<8x3xf32>
// CHECK: %[[Y:.*]] = nn.reshape %[[T]] {dist.id = 5 : i64, nn.layer = "h.0"} : tensor<2x8x3x2x3xf32> -> tensor<2x8x3x6xf32>
// CHECK: return %[[Y]]
func.func @rope(%x: tensor<2x8x3x6xf32>, %p: tensor<8xi64>) -> tensor<2x8x3x6xf32> {
  %0 = nn.rope %x, %p base = 10000.0 {inverse, dist.id = 5 : i64, nn.layer = "h.0"} : tensor<2x8x3x6xf32>, tensor<8xi64>
  return %0 : tensor<2x8x3x6xf32>
}

// An order of one rank, or of ranks with one row each, is the sequence's own. Orders undo each other, and equal elements
// have no order.
// CHECK-LABEL: func.func @zigzags
// CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32>)
// CHECK: %[[C:.*]] = nn.constant dense<2.000000e+00> : tensor<6x4xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[C]]
func.func @zigzags(%x: tensor<6x4xf32>)
    -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = nn.zigzag %x dim = 0 ranks = 1 : tensor<6x4xf32>
  %1 = nn.zigzag %x dim = 1 ranks = 4 inverse : tensor<6x4xf32>
  %2 = nn.zigzag %x dim = 0 ranks = 2 : tensor<6x4xf32>
  %3 = nn.zigzag %2 dim = 0 ranks = 2 inverse : tensor<6x4xf32>
  %4 = nn.zigzag %x dim = 1 ranks = 2 inverse : tensor<6x4xf32>
  %5 = nn.zigzag %4 dim = 1 ranks = 2 : tensor<6x4xf32>
  %c = nn.constant dense<2.0> : tensor<6x4xf32>
  %6 = nn.zigzag %c dim = 0 ranks = 2 : tensor<6x4xf32>
  return %0, %1, %3, %5, %6 : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}

// What does not undo: the same order twice, an order of other ranks or of another dimension, a shard.
// CHECK-LABEL: func.func @zigzags_that_stay
// CHECK-SAME: (%[[X:.*]]: tensor<6x6xf32>, %[[O:.*]]: tensor<i64>)
// CHECK: %[[Z:.*]] = nn.zigzag %[[X]] dim = 0 ranks = 2 : tensor<6x6xf32>
// CHECK-NEXT: nn.zigzag %[[Z]] dim = 0 ranks = 2 : tensor<6x6xf32>
// CHECK-NEXT: nn.zigzag %[[Z]] dim = 0 ranks = 3 inverse : tensor<6x6xf32>
// CHECK-NEXT: nn.zigzag %[[Z]] dim = 1 ranks = 2 inverse : tensor<6x6xf32>
// CHECK-NEXT: nn.zigzag %[[X]] dim = 0 ranks = 1 offset = %[[O]] : tensor<6x6xf32>
func.func @zigzags_that_stay(%x: tensor<6x6xf32>, %o: tensor<i64>)
    -> (tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>) {
  %0 = nn.zigzag %x dim = 0 ranks = 2 : tensor<6x6xf32>
  %1 = nn.zigzag %0 dim = 0 ranks = 2 : tensor<6x6xf32>
  %2 = nn.zigzag %0 dim = 0 ranks = 3 inverse : tensor<6x6xf32>
  %3 = nn.zigzag %0 dim = 1 ranks = 2 inverse : tensor<6x6xf32>
  %4 = nn.zigzag %x dim = 0 ranks = 1 offset = %o : tensor<6x6xf32>
  return %1, %2, %3, %4 : tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>, tensor<6x6xf32>
}
