// A value on its way has the dimensions of its tensor: a program that permutes over one axis is partitioned over another.
// RUN: split-file %s %t
// RUN: shoal-opt %t/hop.mlir --dist-propagate | FileCheck %t/hop.mlir --check-prefix=PROPAGATE
// RUN: shoal-opt %t/hop.mlir --dist-propagate --dist-partition=axes=data --dist-verify-local | FileCheck %t/hop.mlir
// RUN: shoal-opt %t/hop.mlir --dist-partition=axes=data | FileCheck %t/hop.mlir --check-prefix=WHOLE
// RUN: shoal-opt %t/values.mlir --dist-propagate --dist-partition=axes=data --interpret=all-ranks -o /dev/null | FileCheck %t/values.mlir
// RUN: shoal-opt %t/partial.mlir --dist-propagate --dist-partition=axes=data --dist-verify-local | FileCheck %t/partial.mlir
// RUN: shoal-opt %t/scattered.mlir --dist-propagate --dist-partition=axes=data --dist-verify-local | FileCheck %t/scattered.mlir
// RUN: not shoal-opt %t/otherwise.mlir --dist-partition=axes=data 2>&1 | FileCheck %t/otherwise.mlir
// RUN: not shoal-opt %t/rank.mlir 2>&1 | FileCheck %t/rank.mlir

//--- hop.mlir
// The rows, which do not divide over the axis, stay sharded on the way.
dist.mesh @mesh <["data"=2, "context"=3]>
// PROPAGATE: dist.permute_start {{.*}}dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]
// PROPAGATE: dist.wait {{.*}}dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]
// CHECK-LABEL: @hop
// CHECK-NOT: all_gather
// CHECK: dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %{{.*}} {reason = "a ring"} : tensor<3x4xf32> -> !dist.future<tensor<3x4xf32>>
// CHECK-NEXT: nn.mul %
// CHECK-NEXT: dist.wait %{{.*}} : !dist.future<tensor<3x4xf32>> -> tensor<3x4xf32>
// CHECK-NOT: all_gather
// Without annotations an op computes where its operands lie, as a collective_permute does.
// WHOLE: dist.permute_start {{.*}} : tensor<3x4xf32> -> !dist.future<tensor<3x4xf32>>
// WHOLE: dist.wait {{.*}} -> tensor<3x4xf32>
func.func @hop(%x: tensor<5x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<5x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}) {
  %0 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %x {reason = "a ring"} : tensor<5x4xf32> -> !dist.future<tensor<5x4xf32>>
  %1 = nn.mul %x, %x : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  %2 = dist.wait %0 : !dist.future<tensor<5x4xf32>> -> tensor<5x4xf32>
  %3 = nn.add %1, %2 : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  return %3 : tensor<5x4xf32>
}

//--- values.mlir
// Every device receives its own rows, two hops in flight at once, and the sum of all rows leaves out the padding.
dist.mesh @mesh <["data"=2, "context"=3]>
// Rank 2 data + context. Rows are 0 1 2 and 3 4; 100 for each place along the ring.
// CHECK: rank 0 result 0: {{.*}} [200, 201, 202]
// CHECK: rank 0 result 1: {{.*}} [100, 101, 102]
// CHECK: rank 0 result 2: {{.*}} [1010]
// CHECK: rank 1 result 0: {{.*}} [0, 1, 2]
// CHECK: rank 1 result 1: {{.*}} [200, 201, 202]
// CHECK: rank 1 result 2: {{.*}} [10]
// CHECK: rank 2 result 0: {{.*}} [100, 101, 102]
// CHECK: rank 3 result 0: {{.*}} [203, 204, {{.*}}]
// CHECK: rank 5 result 0: {{.*}} [103, 104, {{.*}}]
// CHECK: rank 5 result 1: {{.*}} [3, 4, {{.*}}]
// CHECK: rank 5 result 2: {{.*}} [510]
func.func @values() -> (tensor<5xi64> {dist.sharding = #dist.sharding<@mesh, [{"data"}]>},
                        tensor<5xi64> {dist.sharding = #dist.sharding<@mesh, [{"data"}]>}, tensor<i64>) {
  %rows = nn.iota dim = 0 {dist.shardings = [#dist.sharding<@mesh, [{"data"}]>]} : tensor<5xi64>
  %place = dist.axis_index {"context"} * 100 : tensor<i64>
  %x = nn.add %rows, %place : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
  %0 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %x : tensor<5xi64> -> !dist.future<tensor<5xi64>>
  %1 = dist.permute_start {"context"} from [0, 1, 2] to [2, 0, 1] %x : tensor<5xi64> -> !dist.future<tensor<5xi64>>
  %2 = dist.wait %0 : !dist.future<tensor<5xi64>> -> tensor<5xi64>
  %3 = dist.wait %1 : !dist.future<tensor<5xi64>> -> tensor<5xi64>
  %4 = nn.reduce sum %2 dims = [0] : tensor<5xi64> -> tensor<i64>
  return %2, %3, %4 : tensor<5xi64>, tensor<5xi64>, tensor<i64>
}

//--- partial.mlir
// Partial sums stay partial on the way, and are reduced once, where a collective can take them.
dist.mesh @mesh <["data"=2, "context"=3]>
// CHECK-LABEL: @partial
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[F:.*]] = dist.permute_start {"context"} {{.*}} %[[P]]
// CHECK-NEXT: %[[W:.*]] = dist.wait %[[F]]
// CHECK-NEXT: dist.all_reduce {"data"} sum %[[W]]
// CHECK-NEXT: nn.relu %
// CHECK-NOT: all_reduce
func.func @partial(%x: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"data"}]>},
                   %w: tensor<6x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}) -> tensor<4x2xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32>
  %1 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %0 {reason = "a ring"} : tensor<4x2xf32> -> !dist.future<tensor<4x2xf32>>
  %2 = dist.wait %1 : !dist.future<tensor<4x2xf32>> -> tensor<4x2xf32>
  %3 = nn.relu %2 : tensor<4x2xf32>
  return %3 : tensor<4x2xf32>
}

//--- scattered.mlir
// What is wanted scattered behind the way is scattered before it.
dist.mesh @mesh <["data"=2, "context"=3]>
// CHECK-LABEL: @scattered
// CHECK: %[[P:.*]] = dist.reduce_scatter {"data"} sum dim = 0
// CHECK: dist.permute_start {"context"} {{.*}} %[[P]] {{.*}}: tensor<2x2xf32> -> !dist.future<tensor<2x2xf32>>
func.func @scattered(%x: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"data"}]>},
                     %w: tensor<6x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}) -> tensor<4x2xf32> {
  %0 = nn.matmul %x, %w : (tensor<4x6xf32>, tensor<6x2xf32>) -> tensor<4x2xf32>
  %1 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %0 {reason = "a ring"} : tensor<4x2xf32> -> !dist.future<tensor<4x2xf32>>
  %2 = dist.wait %1 {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : !dist.future<tensor<4x2xf32>> -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

//--- otherwise.mlir
// No collective takes a value that is on its way.
dist.mesh @mesh <["data"=2]>
// CHECK: error: no collectives lead from [{"data"}] to [{}]: a future is laid as what it was started with; annotate both alike
func.func @otherwise(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}]>})
    -> (!dist.future<tensor<4xf32>> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dist.permute_start {"data"} from [0] to [0] %x : tensor<4xf32> -> !dist.future<tensor<4xf32>>
  return %0 : !dist.future<tensor<4xf32>>
}

//--- rank.mlir
// An annotation has a dimension for each of the tensor's.
dist.mesh @mesh <["data"=2]>
// CHECK: error: 'dist.permute_start' op sharding has 0 dimensions, its value has rank 1: '!dist.future<tensor<4xf32>>'
func.func @rank(%x: tensor<4xf32>) {
  %0 = dist.permute_start {"data"} from [0] to [1] %x {dist.shardings = [#dist.sharding<@mesh, []>]} : tensor<4xf32> -> !dist.future<tensor<4xf32>>
  return
}
