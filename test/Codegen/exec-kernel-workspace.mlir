// RUN: shoal-opt %s --exec-kernel-workspace | FileCheck %s

// The kernel stays as it is; only its need is written down.
// CHECK-LABEL: func.func private @columns
// CHECK-SAME: attributes {exec.kernel, exec.workspace = 168000 : i64}
// CHECK: nn.softmax
func.func private @columns(%x: tensor<210x200xf32>) -> tensor<210x200xf32> attributes {exec.kernel} {
  %0 = nn.softmax %x dim = 0 : tensor<210x200xf32>
  return %0 : tensor<210x200xf32>
}

// CHECK-LABEL: func.func private @rows
// CHECK-SAME: attributes {exec.kernel} {
func.func private @rows(%x: tensor<210x200xf32>) -> tensor<210x200xf32> attributes {exec.kernel} {
  %0 = nn.softmax %x dim = 1 : tensor<210x200xf32>
  return %0 : tensor<210x200xf32>
}

// What an op reads of two others lies in registers, though these two share no operand: both run in its loop.
// CHECK-LABEL: func.func private @picked
// CHECK-SAME: attributes {exec.kernel} {
func.func private @picked(%x: tensor<210x200xf32>, %m: tensor<210x1xf32>, %c: tensor<1x200xi64>, %t: tensor<210x1xi64>)
    -> (tensor<210x1xf32>, tensor<210x1xf32>) attributes {exec.kernel} {
  %0 = nn.sub %x, %m : (tensor<210x200xf32>, tensor<210x1xf32>) -> tensor<210x200xf32>
  %1 = nn.exp %0 : tensor<210x200xf32>
  %2 = nn.reduce sum %1 dims = [1] {keep_dims} : tensor<210x200xf32> -> tensor<210x1xf32>
  %3 = nn.compare eq %c, %t : (tensor<1x200xi64>, tensor<210x1xi64>) -> tensor<210x200xi1>
  %4 = nn.constant dense<0.0> : tensor<f32>
  %5 = nn.select %3, %0, %4 : (tensor<210x200xi1>, tensor<210x200xf32>, tensor<f32>) -> tensor<210x200xf32>
  %6 = nn.reduce sum %5 dims = [1] {keep_dims} : tensor<210x200xf32> -> tensor<210x1xf32>
  return %2, %6 : tensor<210x1xf32>, tensor<210x1xf32>
}
