// RUN: shoal-opt %s --convert-nn-to-linalg --exec-kernels-to-gpu --canonicalize --split-input-file | FileCheck %s

// A thread per element, over all blocks: parallel loops are one.
// CHECK-LABEL: gpu.func @chain
// CHECK-SAME: memref<8x6xf32> {llvm.align = 64 : i64, llvm.noalias}
// CHECK-SAME: kernel attributes {nvvm.maxntid = array<i32: 256>}
// CHECK-DAG: %[[BLOCK:.*]] = gpu.block_id x
// CHECK-DAG: %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG: %[[THREADS:.*]] = gpu.block_dim x
// CHECK: %[[BEFORE:.*]] = arith.muli %[[BLOCK]], %[[THREADS]]
// CHECK: %[[FIRST:.*]] = arith.addi %[[BEFORE]], %[[THREAD]]
// CHECK: %[[STRIDE:.*]] = arith.muli %{{.*}}, %[[THREADS]]
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %c48 step %[[STRIDE]]
// CHECK-NOT: scf.for
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK-NOT: gpu.barrier
func.func private @chain(%x: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> attributes {exec.kernel} {
  %0 = nn.add %x, %b : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// A thread per row. The row of exponentials is the thread's own.
// CHECK-LABEL: gpu.func @softmax
// CHECK: memref.alloca() {{.*}} : memref<6xf32>
// CHECK: scf.for {{.*}} to %c8
// CHECK-COUNT-3: scf.for
// CHECK-NOT: gpu.barrier
func.func private @softmax(%x: tensor<8x6xf32>) -> tensor<8x6xf32> attributes {exec.kernel} {
  %0 = nn.softmax %x dim = 1 : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// A sum over everything is shared by the threads of the first block and joined in a tree. What other threads write is
// not promised to be unaliased.
// CHECK-LABEL: gpu.func @sum
// CHECK-NOT: llvm.noalias
// CHECK-SAME: workgroup(%[[SHARED:.*]] : memref<256xf32, #gpu.address_space<workgroup>>)
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: scf.if %[[IS_FIRST]]
// CHECK: %[[PARTIAL:.*]] = scf.for {{.*}} iter_args
// CHECK: memref.store %[[PARTIAL]], %[[SHARED]]
// CHECK-COUNT-8: memref.store {{.*}}, %[[SHARED]]
// CHECK: gpu.barrier
// CHECK: %[[TOTAL:.*]] = memref.load %[[SHARED]][%c0]
// CHECK: scf.if
// CHECK-NEXT: memref.store %[[TOTAL]]
func.func private @sum(%x: tensor<8x6xf32>) -> tensor<f32> attributes {exec.kernel} {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<8x6xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A column sum has a thread per column, behind a barrier when other threads made what it adds up.
// CHECK-LABEL: gpu.func @bias_gradient
// CHECK: scf.for {{.*}} to %c48
// CHECK: arith.mulf
// CHECK: gpu.barrier
// CHECK: scf.for {{.*}} to %c6
// CHECK: scf.for {{.*}} to %c8 {{.*}} iter_args
func.func private @bias_gradient(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<6xf32>) attributes {exec.kernel} {
  %0 = nn.mul %x, %y : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<8x6xf32> -> tensor<6xf32>
  return %0, %1 : tensor<8x6xf32>, tensor<6xf32>
}

// -----

// A scalar is computed by all threads, and stored by one when all have read what it overwrites.
// CHECK-LABEL: gpu.func @step
// CHECK: memref.load
// CHECK: arith.addi
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK-NEXT: memref.store
func.func private @step(%s: tensor<i64>) -> tensor<i64> attributes {exec.kernel, exec.inplace = array<i64: 0>} {
  %0 = nn.constant dense<1> : tensor<i64>
  %1 = nn.add %s, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %1 : tensor<i64>
}
