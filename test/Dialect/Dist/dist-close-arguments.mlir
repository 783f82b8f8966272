// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-close-arguments | FileCheck %s

// What has no annotation is whole; what has one stays, open dimensions too; state lies as its parameter.
dist.mesh @mesh <["data"=4, "tensor"=2]>

// CHECK-LABEL: func.func @model
// CHECK-SAME: [{"data"}, {}]>, {{[^%]*}}nn.input = "x"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w"
// CHECK-SAME: [{?}]>, {{[^%]*}}nn.param = #nn.param<"b"
// CHECK-SAME: [{}]>, {{[^%]*}}nn.param = #nn.param<"c"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.state = #nn.state<"w.m"
// CHECK-SAME: [{}]>, {{[^%]*}}nn.state = #nn.state<"b.rows"
// CHECK-SAME: #dist.sharding<@mesh, []>, {{[^%]*}}nn.valid_rows
func.func @model(%x: tensor<32x64xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                 %b: tensor<10xf32> {nn.param = #nn.param<"b", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{?}]>},
                 %c: tensor<10xf32> {nn.param = #nn.param<"c", init = zeros>},
                 %m: tensor<64x10xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>},
                 %r: tensor<64xf32> {nn.state = #nn.state<"b.rows", of = "b", init = 0.0>},
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

// -----

// State of another element type lies as its parameter; of another shape it must say how.
dist.mesh @mesh <["tensor"=2]>
// CHECK-LABEL: func.func @wide
// CHECK-SAME: [{}, {"tensor"}]>, dist.why = {tensor = #dist.cause<"the annotation of \22w\22 at {{.*}}">}, nn.state = #nn.state<"w.m"
// CHECK-SAME: [{}]>, nn.state = #nn.state<"w.rows"
func.func @wide(%w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                %m: tensor<64x10xf64> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>},
                %r: tensor<64xf32> {nn.state = #nn.state<"w.rows", of = "w", init = 0.0>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return
}

// -----

dist.mesh @mesh <["tensor"=2]>
// expected-note @+1 {{the parameter is here}}
func.func @rows(%w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                // expected-error @+1 {{state "w.rows" of 'tensor<64xf32>' cannot lie as its parameter, which has another shape, and needs an annotation: 'tensor<64x10xf32>' lies as #dist.sharding<@mesh, [{}, {"tensor"}]>}}
                %r: tensor<64xf32> {nn.state = #nn.state<"w.rows", of = "w", init = 0.0>}) {
  return
}

// -----

// State of a parameter that is sharded over one axis and lies flat over another lies so, too.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @both
// CHECK-SAME: dist.flat = #dist.flat<{"data"}>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>,{{.*}} nn.state = #nn.state<"w.m"
func.func @both(%w: tensor<64x10xf32> {nn.param = #nn.param<"w", init = zeros>, dist.flat = #dist.flat<{"data"}>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                %m: tensor<64x10xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>}) {
  return
}
