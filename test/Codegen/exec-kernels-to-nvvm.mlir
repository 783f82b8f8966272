// RUN: shoal-opt %s --convert-nn-to-linalg --exec-kernels-to-gpu --exec-kernels-to-nvvm --split-input-file --verify-diagnostics | FileCheck %s

// Buffers are bare pointers, ids are special registers, and exp is arithmetic: no call of libdevice.
// CHECK-LABEL: llvm.func @k(
// CHECK-SAME: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias}
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 256>
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK-NOT: llvm.call
// CHECK: llvm.intr.fma
func.func private @k(%x: tensor<8x6xf64>) -> tensor<8x6xf64> attributes {exec.kernel} {
  %0 = nn.exp %x : tensor<8x6xf64>
  return %0 : tensor<8x6xf64>
}

// -----

// A function without an expansion is refused.
gpu.module @kernels {
  gpu.func @k(%x: memref<4xf64>) kernel {
    %c0 = arith.constant 0 : index
    %0 = memref.load %x[%c0] : memref<4xf64>
    // expected-error @below {{has no expansion to PTX for 'f64'}}
    %1 = math.atan %0 : f64
    memref.store %1, %x[%c0] : memref<4xf64>
    gpu.return
  }
}
