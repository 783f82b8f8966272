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
