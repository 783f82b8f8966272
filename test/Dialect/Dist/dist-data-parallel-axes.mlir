// RUN: shoal-opt %s --dist-data-parallel=axes=replica,data | FileCheck %s
// RUN: sed 's/"data"=2/"data.0"=1, "data.1"=2/' %s | shoal-opt --dist-data-parallel | FileCheck %s --check-prefix=PARTS
// RUN: shoal-opt %s --shoal-global="data-axes=replica,data" --shoal-local="data-axes=replica,data" | FileCheck %s --check-prefix=STEP

// Several axes split the rows, major to minor as they are named; a split axis by all of its parts.
dist.mesh @mesh <["replica"=2, "data"=2]>
// CHECK-LABEL: func.func @f
// CHECK-SAME: [{"replica", "data"}, {}]>, {{[^%]*}}nn.input = "x"
// PARTS-LABEL: func.func @f
// PARTS-SAME: [{"data.0", "data.1"}, {}]>, {{[^%]*}}nn.input = "x"
// Gradients are packed and reduced once, over both.
// STEP-LABEL: func.func @f
// STEP: dist.pack
// STEP-NEXT: dist.all_reduce {"replica", "data"}
func.func @f(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
