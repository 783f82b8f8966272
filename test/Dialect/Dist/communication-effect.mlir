// Generic passes neither erase nor merge what other ranks wait for.
// RUN: shoal-opt %s --canonicalize --cse | FileCheck %s
dist.mesh @mesh <["x"=2]>

// Unused, and twice the same; a slice communicates nothing and is merged like any other op.
// CHECK-LABEL: func.func @unused
// CHECK-COUNT-3: dist.all_reduce
// CHECK-COUNT-1: dist.all_slice
// CHECK-NOT: dist.all_slice
func.func @unused(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = dist.all_reduce {"x"} sum %a : tensor<4xf32>
  %1 = dist.all_reduce {"x"} sum %a : tensor<4xf32>
  %2 = dist.all_reduce {"x"} sum %a : tensor<4xf32>
  %3 = dist.all_slice {"x"} dim = 0 %a : tensor<4xf32> -> tensor<2xf32>
  %4 = dist.all_slice {"x"} dim = 0 %a : tensor<4xf32> -> tensor<2xf32>
  return %2, %3, %4 : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>
}

// The same collective in two branches, used in one of them only.
// CHECK-LABEL: func.func @branches
// CHECK-COUNT-2: dist.all_reduce
func.func @branches(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  %0 = scf.if %first -> tensor<f32> {
    %1 = dist.all_reduce {"x"} sum %a : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    %1 = dist.all_reduce {"x"} sum %a : tensor<f32>
    scf.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}
