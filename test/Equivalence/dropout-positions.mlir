// Dropout of a sequence in another order, by the positions of its rows, drops what one device drops under every plan,
// forward and backward: sizes that do not divide, devices without rows, the batch sharded as well.
// DEFINE: %{mesh} =
// DEFINE: %{ranks} =
// DEFINE: %{check} = sed -e 's/MESH/%{mesh}/' -e 's/RANKS/%{ranks}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=context optimizer=sgd lr=0.1" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=context" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=3" -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "context"=1
// REDEFINE: %{ranks} = 3
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "context"=3
// RUN: %{check}
// Two ops of a shard share the positions of its rows, and the offset is that of the batch alone.
// RUN: FileCheck %s --input-file=%t.local.mlir
// CHECK-COUNT-1: nn.dynamic_slice
// CHECK-NOT: nn.dynamic_slice
// CHECK: %[[O:.*]] = nn.mul
// CHECK: nn.dropout %{{.*}} id = 0 seed = %{{.*}} offset = %[[O]] global = [4, 7, 6] positions = %[[P:.*]] dim = 1 {{.*}}: tensor<2x3x6xf64>, tensor<3xi64>
// CHECK: nn.dropout %{{.*}} id = 1 seed = %{{.*}} offset = %[[O]] global = [4, 7, 6] positions = %[[P]] dim = 1 {{.*}}: tensor<2x3x6xf64>, tensor<3xi64>
// CHECK-NOT: nn.dynamic_slice
// REDEFINE: %{mesh} = "data"=1, "context"=5
// REDEFINE: %{ranks} = 2
// RUN: %{check}
// REDEFINE: %{mesh} = "context"=2, "data"=3
// RUN: %{check}
dist.mesh @mesh <[MESH]>
func.func @drops(
    %x: tensor<4x7x6xf64> {nn.input = "x"},
    %w: tensor<7x6xf64> {nn.param = #nn.param<"w", init = uniform(-1.0, 1.0)>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.mul %x, %w : (tensor<4x7x6xf64>, tensor<7x6xf64>) -> tensor<4x7x6xf64>
  %rows = nn.iota dim = 0 : tensor<7xi64>
  %p = nn.zigzag %rows dim = 0 ranks = RANKS : tensor<7xi64>
  %1 = nn.zigzag %0 dim = 1 ranks = RANKS {dist.shardings = [#dist.sharding<@mesh, [{?}, {"context"}, {}]>]} : tensor<4x7x6xf64>
  %2 = nn.dropout %1 rate = 0.5 id = 0 positions = %p dim = 1 : tensor<4x7x6xf64>, tensor<7xi64>
  %d = nn.dropout %2 rate = 0.1 id = 1 positions = %p dim = 1 : tensor<4x7x6xf64>, tensor<7xi64>
  %3 = nn.zigzag %d dim = 1 ranks = RANKS inverse {dist.shardings = [#dist.sharding<@mesh, [{?}, {}, {}]>]} : tensor<4x7x6xf64>
  %4 = nn.mul %3, %x : (tensor<4x7x6xf64>, tensor<4x7x6xf64>) -> tensor<4x7x6xf64>
  %loss = nn.reduce mean %4 dims = [0, 1, 2] : tensor<4x7x6xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
