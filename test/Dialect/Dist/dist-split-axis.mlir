// RUN: shoal-opt %s --dist-split-axis="factors=2,3" | FileCheck %s
// RUN: not shoal-opt %s --dist-split-axis="factors=2,2" 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not shoal-opt %s --dist-split-axis="factors=6,1,0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not shoal-opt %s --dist-split-axis="axis=pipe factors=2,2" 2>&1 | FileCheck %s --check-prefix=AXIS
// The step is the same on both meshes: whoever holds an element holds it after the split.
// RUN: shoal-opt %s --shoal-global="data-axes=data model-axes=tensor" -o %t.global.mlir
// RUN: shoal-opt %t.global.mlir --dist-split-axis="factors=3,2" --shoal-local="data-axes=data model-axes=tensor" -o %t.local.mlir
// RUN: shoal-opt %t.local.mlir --dist-verify-plan=reference=%t.global.mlir -o /dev/null
// RUN: sed 's/nn.param = #nn.param<"w2"/dist.flat = #dist.flat<{"tensor"}, per_use>, &/' %s | shoal-opt --dist-split-axis="factors=2,3" | FileCheck %s --check-prefix=FLAT

// FLAT: dist.flat = #dist.flat<{"tensor.0", "tensor.1"}, per_use>
// Everything that names the axis names its parts, in its place; ranks stay, by device_ids too.
// SIZES: error: parts of mesh axis "tensor" must multiply to its size 6, got: 2 * 2
// ZERO: error: parts of mesh axis "tensor" must multiply to its size 6, got: 6 * 1 * 0
// AXIS: error: splitting an axis needs mesh axis "pipe", the mesh is #dist.mesh<["data"=2, "tensor"=6]
// CHECK: dist.mesh @mesh <["data"=2, "tensor.0"=2, "tensor.1"=3], device_ids=[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>
dist.mesh @mesh <["data"=2, "tensor"=6], device_ids=[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>

// CHECK-LABEL: func.func @mlp
// CHECK-SAME: [{}, {"tensor.0", "tensor.1", ?}p1]>, nn.param = #nn.param<"w1"
// CHECK: nn.matmul {{.*}} unreduced=sum{"tensor.0", "tensor.1"}
// CHECK: dist.reshard %{{.*}} <@mesh, [{"tensor.0", "tensor.1"}, {}]>
func.func @mlp(%x: tensor<4x6xf64> {nn.input = "x"},
               %w1: tensor<6x11xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor", ?}p1]>},
               %w2: tensor<11x4xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<4x6xf64>, tensor<6x11xf64>) -> tensor<4x11xf64>
  %1 = nn.matmul %0, %w2 {dist.shardings = [#dist.sharding<@mesh, [{?}, {?}], unreduced=sum{"tensor"}>]} : (tensor<4x11xf64>, tensor<11x4xf64>) -> tensor<4x4xf64>
  %2 = dist.reshard %1 <@mesh, [{"tensor"}, {}]> : tensor<4x4xf64>
  %loss = nn.reduce sum %2 dims = [0, 1] : tensor<4x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
