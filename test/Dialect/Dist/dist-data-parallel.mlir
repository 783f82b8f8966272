// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-data-parallel | FileCheck %s
// RUN: not shoal-opt %s -split-input-file --dist-data-parallel=axes=replica 2>&1 | FileCheck %s --check-prefix=AXIS

// Batched inputs are sharded by rows; other arguments, results and ops follow later.

// AXIS: error: data parallelism needs mesh axis "replica", the mesh is #dist.mesh<["data"=4, "tensor"=2]>
dist.mesh @mesh <["data"=4, "tensor"=2]>

// CHECK-LABEL: func.func @model
// CHECK-SAME: %{{[^:]*}}: tensor<32x64xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>, dist.why = {data = #dist.cause<"the batch of \22x\22" by "data parallelism">}, nn.input = "x"}
// CHECK-SAME: %{{[^:]*}}: tensor<32xi64> {dist.sharding = #dist.sharding<@mesh, [{"data"}]>, dist.why = {{.*}}, nn.input = "y"}
// CHECK-SAME: %{{[^:]*}}: tensor<7xf32> {nn.input = #nn.input<"positions", unbatched>}
// CHECK-SAME: %{{[^:]*}}: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>}
// CHECK-SAME: %{{[^:]*}}: tensor<i64> {nn.valid_rows}
// CHECK-SAME: -> (tensor<32x10xf32> {nn.output = "logits"})
func.func @model(%x: tensor<32x64xf32> {nn.input = "x"}, %y: tensor<32xi64> {nn.input = "y"},
                 %p: tensor<7xf32> {nn.input = #nn.input<"positions", unbatched>},
                 %w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>},
                 %v: tensor<i64> {nn.valid_rows}) -> (tensor<32x10xf32> {nn.output = "logits"}) {
  %0 = nn.matmul %x, %w : (tensor<32x64xf32>, tensor<64x10xf32>) -> tensor<32x10xf32>
  return %0 : tensor<32x10xf32>
}

// Annotations by hand win: open rows take the axis at their minor end, closed ones stay.
// CHECK-LABEL: func.func @by_hand
// CHECK-SAME: [{"tensor", "data", ?}, {}]>, {{[^%]*}}nn.input = "a"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.input = "b"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param
// CHECK-SAME: [{"data"}]>, {{[^%]*}}nn.input = "c"
func.func @by_hand(%a: tensor<32x64xf32> {nn.input = "a", dist.sharding = #dist.sharding<@mesh, [{"tensor", ?}, {}]>},
                   %b: tensor<32x64xf32> {nn.input = "b", dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                   %w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                   %c: tensor<32xf32> {nn.input = "c"}) -> tensor<32x10xf32> {
  %0 = nn.matmul %a, %w : (tensor<32x64xf32>, tensor<64x10xf32>) -> tensor<32x10xf32>
  return %0 : tensor<32x10xf32>
}

// A function without batched inputs is no model of this strategy.
// CHECK-LABEL: func.func @other
// CHECK-SAME: (%{{[^:]*}}: tensor<8xf32>)
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// The axis on another dimension of a batched input contradicts the strategy.
dist.mesh @mesh <["data"=4]>
// expected-error @+1 {{argument 0 "x": data parallelism shards dimension 0 over "data", but its annotation uses the axis elsewhere: #dist.sharding<@mesh, [{}, {"data"}]>}}
func.func @f(%x: tensor<32x64xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"data"}]>}) -> tensor<32x64xf32> {
  return %x : tensor<32x64xf32>
}

// -----

dist.mesh @mesh <["data"=4]>
// expected-error @+1 {{data parallelism over "data": annotations by hand keep every batched input whole}}
func.func @f(%x: tensor<32xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<32xf32> {
  return %x : tensor<32xf32>
}

// -----

// expected-error @+1 {{data parallelism needs mesh axis "data", the mesh is #dist.mesh<["tensor"=4]>}}
dist.mesh @mesh <["tensor"=4]>
func.func @f(%x: tensor<32xf32> {nn.input = "x"}) -> tensor<32xf32> {
  return %x : tensor<32xf32>
}

// -----

// expected-error @+1 {{data parallelism over axis "data" needs a dist.mesh in the module}}
module {
  func.func @f(%x: tensor<32xf32> {nn.input = "x"}) -> tensor<32xf32> {
    return %x : tensor<32xf32>
  }
}

// -----

// expected-error @+1 {{data parallelism needs a batched input (nn.input = "name"), no function has one}}
module {
  dist.mesh @mesh <["data"=4]>
  func.func @f(%x: tensor<32xf32>) -> tensor<32xf32> {
    return %x : tensor<32xf32>
  }
}
