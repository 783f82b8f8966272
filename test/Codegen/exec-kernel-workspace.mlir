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

// The same through ops between: a product that is read at the end waits for the other one, element by element.
// CHECK-LABEL: func.func private @made_of_both
// CHECK-SAME: attributes {exec.kernel} {
func.func private @made_of_both(%a: tensor<210x200xf32>, %b: tensor<210x200xf32>, %c: tensor<210x200xf32>)
    -> tensor<210x200xf32> attributes {exec.kernel} {
  %0 = nn.mul %a, %b : (tensor<210x200xf32>, tensor<210x200xf32>) -> tensor<210x200xf32>
  %1 = nn.sigmoid %c : tensor<210x200xf32>
  %2 = nn.exp %1 : tensor<210x200xf32>
  %3 = nn.mul %0, %2 : (tensor<210x200xf32>, tensor<210x200xf32>) -> tensor<210x200xf32>
  return %3 : tensor<210x200xf32>
}

// The cast of a vector runs in front of the rows, not between what makes one and what reads it.
// CHECK-LABEL: func.func private @bf16_norm
// CHECK-SAME: attributes {exec.kernel} {
func.func private @bf16_norm(%x: tensor<210x200xbf16>, %w: tensor<200xbf16>) -> (tensor<210x200xbf16>, tensor<210xf32>)
    attributes {exec.kernel} {
  %0, %1 = nn.rms_norm %x, %w eps = 1.0e-06 : tensor<210x200xbf16>, tensor<200xbf16>
  return %0, %1 : tensor<210x200xbf16>, tensor<210xf32>
}

// And its gradient: a row of each value is enough, for the sum over rows too.
// CHECK-LABEL: func.func private @bf16_norm_grad
// CHECK-SAME: attributes {exec.kernel} {
func.func private @bf16_norm_grad(%x: tensor<210x200xbf16>, %r: tensor<210x1xf32>, %dy: tensor<210x200xbf16>,
    %w: tensor<200xbf16>) -> (tensor<210x200xbf16>, tensor<200xf32>) attributes {exec.kernel} {
  %0 = nn.cast %x : tensor<210x200xbf16> -> tensor<210x200xf32>
  %1 = nn.mul %0, %r : (tensor<210x200xf32>, tensor<210x1xf32>) -> tensor<210x200xf32>
  %2 = nn.cast %dy : tensor<210x200xbf16> -> tensor<210x200xf32>
  %3 = nn.cast %w : tensor<200xbf16> -> tensor<200xf32>
  %4 = nn.mul %2, %3 : (tensor<210x200xf32>, tensor<200xf32>) -> tensor<210x200xf32>
  %5 = nn.mul %4, %1 : (tensor<210x200xf32>, tensor<210x200xf32>) -> tensor<210x200xf32>
  %6 = nn.reduce sum %5 dims = [1] {keep_dims} : tensor<210x200xf32> -> tensor<210x1xf32>
  %7 = nn.mul %1, %6 : (tensor<210x200xf32>, tensor<210x1xf32>) -> tensor<210x200xf32>
  %8 = nn.sub %4, %7 : (tensor<210x200xf32>, tensor<210x200xf32>) -> tensor<210x200xf32>
  %9 = nn.cast %8 : tensor<210x200xf32> -> tensor<210x200xbf16>
  %10 = nn.mul %2, %1 : (tensor<210x200xf32>, tensor<210x200xf32>) -> tensor<210x200xf32>
  %11 = nn.reduce sum %10 dims = [0] : tensor<210x200xf32> -> tensor<200xf32>
  return %9, %11 : tensor<210x200xbf16>, tensor<200xf32>
}
