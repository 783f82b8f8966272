// RUN: shoal-opt %s --convert-nn-to-linalg --exec-bufferize-kernels --exec-kernels-to-llvm | FileCheck %s

// The body takes one pointer per buffer; the entry unpacks them. NaN and infinity keep their meaning.
// CHECK-LABEL: llvm.func internal @k.body(
// CHECK-SAME: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}
// CHECK-SAME: passthrough = ["noinline", "nounwind"]
// CHECK: llvm.fadd {{.*}} {fastmathFlags = #llvm.fastmath<nsz, arcp, contract, afn, reassoc>} : f32
// CHECK: llvm.intr.maximum
// CHECK-LABEL: llvm.func hidden @k(
// CHECK-SAME: !llvm.ptr
// CHECK-COUNT-3: llvm.load
// CHECK: llvm.call @k.body
// CHECK: llvm.return
func.func private @k(%x: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> attributes {exec.kernel} {
  %0 = nn.add %x, %b : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}
