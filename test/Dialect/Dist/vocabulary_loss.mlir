// RUN: shoal-opt %s --shoal-global="model-axes=tensor optimizer=sgd" --shoal-local="model-axes=tensor" | FileCheck %s
// RUN: sed 's/<\["tensor"=2\]>/<["data"=2, "tensor"=2]>/' %s | shoal-opt --shoal-global="data-axes=data model-axes=tensor optimizer=sgd" \
// RUN:   --shoal-local="data-axes=data model-axes=tensor" | FileCheck %s --check-prefix=ROWS

// The loss over a sharded vocabulary is three reductions of one number per row: maximum, sum of exponentials, the
// target's logit. Backward sends nothing, and logits are never gathered.
// CHECK-LABEL: func.func @head
// CHECK: %[[LOGITS:.*]] = nn.matmul %{{.*}} -> tensor<2x8x26xf32>
// CHECK-NOT: dist.all_
// CHECK: dist.all_reduce {{.*}} max {{.*}} tensor<2x8x1xf32>
// CHECK-NOT: dist.all_
// CHECK: dist.all_reduce {{.*}} sum {{.*}} tensor<2x8x1xf32>
// CHECK-NOT: dist.all_
// CHECK: dist.all_reduce {{.*}} sum {{.*}} tensor<2x8x1xf32>
// CHECK-NOT: dist.all_
// CHECK: nn.matmul %{{.*}} -> tensor<16x26xf32>
// CHECK-NOT: dist.all_
// CHECK: return

// Where rows are sharded as well, classes are still numbered once, and no device numbers those of all rows to slice its own.
// ROWS-NOT: all_slice
// ROWS: nn.iota dim = 2 {{.*}} tensor<1x1x26xi64>
// ROWS-NOT: all_slice
// ROWS: return
dist.mesh @mesh <["tensor"=2]>
func.func @head(
    %x: tensor<2x8x16xf32> {nn.input = "x"},
    %y: tensor<2x8xi64> {nn.input = "y"},
    %w: tensor<16x51xf32> {nn.param = #nn.param<"w", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w : (tensor<2x8x16xf32>, tensor<16x51xf32>) -> tensor<2x8x51xf32>
  %loss, %lse = nn.cross_entropy mean %0, %y : (tensor<2x8x51xf32>, tensor<2x8xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
