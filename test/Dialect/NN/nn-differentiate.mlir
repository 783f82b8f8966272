// RUN: shoal-opt %s --nn-differentiate | FileCheck %s

// A weight that is used twice gets the sum of both cotangents; new ops inherit the layer.
// CHECK-LABEL: func.func @twice
// CHECK-SAME: (%[[X:[^:]*]]: tensor<1x2xf64> {nn.input = "x"}, %[[W:[^:]*]]: tensor<2x2xf64>
// CHECK-SAME: -> (tensor<f64> {nn.loss}, tensor<2x2xf64> {nn.grad = "w"})
// CHECK: %[[H:.*]] = nn.matmul %[[X]], %[[W]] {nn.layer = "a"}
// CHECK: %[[Y:.*]] = nn.matmul %[[H]], %[[W]] {nn.layer = "b"}
// CHECK: %[[LOSS:.*]] = nn.reduce sum %[[Y]]
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f64>
// CHECK: %[[KEPT:.*]] = nn.reshape %[[ONE]] : tensor<f64> -> tensor<1x1xf64>
// CHECK: %[[DY:.*]] = nn.broadcast %[[KEPT]] : tensor<1x1xf64> -> tensor<1x2xf64>
// CHECK: %[[DH:.*]] = nn.matmul %[[DY]], %[[W]] {nn.layer = "b", transpose_b}
// CHECK: %[[DW1:.*]] = nn.matmul %[[H]], %[[DY]] {nn.layer = "b", transpose_a}
// CHECK: %[[DW0:.*]] = nn.matmul %[[X]], %[[DH]] {nn.layer = "a", transpose_a}
// CHECK: %[[DW:.*]] = nn.add %[[DW1]], %[[DW0]] {nn.layer = "a"}
// CHECK: return %[[LOSS]], %[[DW]]
func.func @twice(%x: tensor<1x2xf64> {nn.input = "x"}, %w: tensor<2x2xf64> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w {nn.layer = "a"} : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %1 = nn.matmul %0, %w {nn.layer = "b"} : (tensor<1x2xf64>, tensor<2x2xf64>) -> tensor<1x2xf64>
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<1x2xf64> -> tensor<f64>
  return %2 : tensor<f64>
}

// Nothing is differentiated off the path from parameters to the loss: neither towards inputs, nor a branch that ends in a metric.
// CHECK-LABEL: func.func @path
// CHECK-SAME: (%[[X:[^:]*]]: tensor<4xf32>
// CHECK: nn.tanh
// CHECK: %[[E:.*]] = nn.exp %[[X]]
// CHECK: nn.reduce max
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[ONE]]
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[R]]
// CHECK-NEXT: %[[DW:.*]] = nn.mul %[[B]], %[[E]]
// CHECK-NEXT: return %{{.*}}, %{{.*}}, %[[DW]]
func.func @path(%x: tensor<4xf32> {nn.input = "x"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<f32> {nn.metric = "m"}) {
  %0 = nn.tanh %w : tensor<4xf32>
  %1 = nn.exp %x : tensor<4xf32>
  %2 = nn.mul %w, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = nn.reduce sum %2 dims = [0] : tensor<4xf32> -> tensor<f32>
  %4 = nn.reduce max %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %3, %4 : tensor<f32>, tensor<f32>
}

// The loss may be the parameter itself.
// CHECK-LABEL: func.func @itself
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// CHECK: return %{{.*}}, %[[ONE]]
func.func @itself(%w: tensor<f32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  return %w : tensor<f32>
}
