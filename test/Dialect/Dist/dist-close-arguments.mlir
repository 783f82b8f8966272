// RUN: shoal-opt %s -split-input-file --dist-close-arguments | FileCheck %s

// What has no annotation is whole; what has one stays, open dimensions too; state lies as its parameter.
dist.mesh @mesh <["data"=4, "tensor"=2]>

// CHECK-LABEL: func.func @model
// CHECK-SAME: [{"data"}, {}]>, {{[^%]*}}nn.input = "x"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w"
// CHECK-SAME: [{?}]>, {{[^%]*}}nn.param = #nn.param<"b"
// CHECK-SAME: [{}]>, {{[^%]*}}nn.param = #nn.param<"c"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.state = #nn.state<"w.m"
// CHECK-SAME: [{}]>, {{[^%]*}}nn.state = #nn.state<"w.rows"
// CHECK-SAME: #dist.sharding<@mesh, []>, {{[^%]*}}nn.valid_rows
func.func @model(%x: tensor<32x64xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                 %b: tensor<10xf32> {nn.param = #nn.param<"b", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{?}]>},
                 %c: tensor<10xf32> {nn.param = #nn.param<"c", init = zeros>},
                 %m: tensor<64x10xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>},
                 %r: tensor<64xf32> {nn.state = #nn.state<"w.rows", of = "w", init = 0.0>},
                 %v: tensor<i64> {nn.valid_rows}) -> tensor<32x10xf32> {
  %0 = nn.matmul %x, %w : (tensor<32x64xf32>, tensor<64x10xf32>) -> tensor<32x10xf32>
  return %0 : tensor<32x10xf32>
}

// Roles make a model: any other function is the business of its annotations.
// CHECK-LABEL: func.func @other
// CHECK-SAME: (%{{[^:]*}}: tensor<8xf32>)
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// One device has nothing to close.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: dist.sharding
func.func @alone(%x: tensor<8xf32> {nn.input = "x"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
