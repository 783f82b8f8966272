// RUN: shoal-opt %s --convert-nn-to-linalg --exec-bufferize-kernels --canonicalize --split-input-file | FileCheck %s

// A chain is one loop nest, and what passes between its ops stays in registers.
// CHECK-LABEL: func.func private @chain
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<8x6xf32> {llvm.align = 64 : i64, llvm.noalias}
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<8x6xf32> {llvm.align = 64 : i64, llvm.noalias})
// CHECK-NOT: alloc
// CHECK-COUNT-2: scf.for
// CHECK: memref.load %[[X]]
// CHECK: arith.addf
// CHECK-NOT: scf.for
// CHECK: arith.maximumf
// CHECK: memref.store {{.*}} %[[OUT]]
func.func private @chain(%x: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> attributes {exec.kernel} {
  %0 = nn.add %x, %b : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// Softmax goes over its rows once: three inner loops in one outer loop, and the only temporary is a row.
// CHECK-LABEL: func.func private @softmax
// CHECK: %[[ROW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<6xf32>
// CHECK: scf.for
// CHECK:   scf.for {{.*}} iter_args
// CHECK:     arith.maximumf
// CHECK:   scf.for {{.*}} iter_args
// CHECK:     math.exp
// CHECK:     memref.store {{.*}} %[[ROW]]
// CHECK:   scf.for
// CHECK:     arith.divf
func.func private @softmax(%x: tensor<8x6xf32>) -> tensor<8x6xf32> attributes {exec.kernel} {
  %0 = nn.softmax %x dim = 1 : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// An update in place has one buffer for the old and the new value, and its shape does not matter.
// CHECK-LABEL: func.func private @sgd
// CHECK-SAME: (%[[P:[a-z0-9]+]]: memref<8x6xf32> {{[^%]*}}, %{{[a-z0-9]+}}: memref<8x6xf32> {{[^%]*}}, %{{[a-z0-9]+}}: memref<f32> {{[^%]*}})
// CHECK: %[[FLAT:.*]] = memref.reinterpret_cast %[[P]] {{.*}} to memref<48xf32>
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: memref.store {{.*}} %[[FLAT]]
func.func private @sgd(%p: tensor<8x6xf32>, %g: tensor<8x6xf32>, %lr: tensor<f32>) -> tensor<8x6xf32>
    attributes {exec.kernel, exec.inplace = array<i64: 0>} {
  %0 = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.0} : tensor<8x6xf32>, tensor<f32>
  return %0 : tensor<8x6xf32>
}

// -----

// A column sum is added up in its destination, in the loops of what it sums.
// CHECK-LABEL: func.func private @bias_gradient
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: memref<6xf32> {llvm.align = 64 : i64, llvm.noalias})
// CHECK: scf.for
// CHECK:   memref.store {{.*}} %[[SUM]]
// CHECK: scf.for
// CHECK:   scf.for
// CHECK:     arith.mulf
// CHECK:     memref.load %[[SUM]]
// CHECK:     arith.addf
// CHECK:     memref.store {{.*}} %[[SUM]]
func.func private @bias_gradient(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<6xf32>) attributes {exec.kernel} {
  %0 = nn.mul %x, %y : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<8x6xf32> -> tensor<6xf32>
  return %0, %1 : tensor<8x6xf32>, tensor<6xf32>
}

// -----

// What the stack does not hold is asked for as a workspace, the last buffer.
// CHECK-LABEL: func.func private @columns
// CHECK-SAME: %[[WS:[a-z0-9]+]]: memref<168000xi8> {llvm.align = 64 : i64, llvm.noalias}) attributes {exec.kernel, exec.workspace = 168000 : i64}
// CHECK: memref.view %[[WS]]
// CHECK-NOT: memref.alloc(
func.func private @columns(%x: tensor<210x200xf32>) -> tensor<210x200xf32> attributes {exec.kernel} {
  %0 = nn.softmax %x dim = 0 : tensor<210x200xf32>
  return %0 : tensor<210x200xf32>
}
