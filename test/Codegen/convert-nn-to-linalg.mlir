// RUN: shoal-opt %s --convert-nn-to-linalg --split-input-file | FileCheck %s

// Broadcasting is in the maps, so nothing is copied.
// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func private @add
// CHECK: linalg.generic {indexing_maps = [#[[$ID]], #[[$ROW]], #[[$ID]]], iterator_types = ["parallel", "parallel"]}
// CHECK: arith.addf
func.func private @add(%x: tensor<8x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> attributes {exec.kernel} {
  %0 = nn.add %x, %b : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// bf16 is storage: sums are f32 and rounded once.
// CHECK-LABEL: func.func private @sum
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: arith.addf {{.*}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[SUM]] : tensor<4xf32>) outs(%{{.*}} : tensor<4xbf16>)
// CHECK: arith.truncf
func.func private @sum(%x: tensor<8x4xbf16>) -> tensor<4xbf16> attributes {exec.kernel} {
  %0 = nn.reduce sum %x dims = [0] : tensor<8x4xbf16> -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// A mask compares global positions with the limit.
// CHECK-LABEL: func.func private @mask
// CHECK: linalg.index 0
// CHECK: arith.addi
// CHECK: arith.cmpi slt
// CHECK: arith.select
func.func private @mask(%x: tensor<8x4xf32>, %n: tensor<i64>, %o: tensor<i64>) -> tensor<8x4xf32> attributes {exec.kernel} {
  %0 = nn.mask %x dim = 0 limit = %n offset = %o fill = 0.0 : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// The target's logit is found by comparison, not by an indexed read, so that logits need no buffer.
// CHECK-LABEL: func.func private @loss
// CHECK-NOT: tensor.extract
// CHECK: math.log
// CHECK: linalg.index 1
// CHECK: arith.cmpi eq
func.func private @loss(%x: tensor<8x4xf32>, %t: tensor<8xi64>) -> tensor<f32> attributes {exec.kernel} {
  %0, %lse0 = nn.cross_entropy sum %x, %t : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Functions that are no kernels stay as they are.
// CHECK-LABEL: func.func @step
// CHECK: nn.relu
func.func @step(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.relu %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
