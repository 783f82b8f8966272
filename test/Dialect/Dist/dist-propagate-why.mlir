// RUN: shoal-opt %s --split-input-file --dist-propagate | FileCheck %s

// Axes carry where they came from: here from two annotations by hand, through products and into what is partial.
// CHECK-LABEL: func.func @two_hands
// CHECK: %[[A:.*]] = nn.matmul %{{.*}}, %{{.*}} {{.*}}dist.why = {x = #dist.cause<"the annotation of argument 0 at dist-propagate-why.mlir:{{.*}}">, y = #dist.cause<"the annotation of \22w\22 at dist-propagate-why.mlir:{{.*}}">}
// CHECK: nn.matmul %[[A]], %{{.*}} {{.*}}unreduced=sum{"y"}>], dist.why = {x = #dist.cause<"the annotation of argument 0 {{.*}}, y = #dist.cause<"the annotation of \22w\22
dist.mesh @mesh <["x"=2, "y"=2]>
func.func @two_hands(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                     %w: tensor<4x6xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>},
                     %v: tensor<6x2xf32>) -> tensor<8x2xf32> {
  %0 = nn.matmul %a, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = nn.matmul %0, %v : (tensor<8x6xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// -----

// What a strategy recorded is passed on as it is, also beside a hand's and for a part of a split axis.
// CHECK-LABEL: func.func @strategy
// CHECK-SAME: %{{[^:]*}}: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y.1"}]>, dist.why = {y.1 = #dist.cause<"columns" in "h.0" by "--strategy">}}
// CHECK: nn.matmul {{.*}}dist.why = {x = #dist.cause<"the annotation of argument 0 {{.*}}">, y.1 = #dist.cause<"columns" in "h.0" by "--strategy">}
dist.mesh @mesh <["x"=2, "y.0"=1, "y.1"=2]>
func.func @strategy(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                    %w: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y.1"}]>, dist.why = {y = #dist.cause<"columns" in "h.0" by "--strategy">}}) -> tensor<8x6xf32> {
  %0 = nn.matmul %a, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// The op of a dist.reshard knows both: where its value's axis came from, and the hand that takes it elsewhere. A value without axes needs no reason.
// CHECK-LABEL: func.func @reshard
// CHECK: dist.reshard {{.*}} {{.*}}dist.why = {x = #dist.cause<"the annotation of dist.reshard at dist-propagate-why.mlir
// CHECK: nn.relu %{{.*}} {dist.shardings = [#dist.sharding<@mesh, [{}, {}]>]}
dist.mesh @mesh <["x"=2]>
func.func @reshard(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<2x2xf32>) -> (tensor<8x4xf32>, tensor<2x2xf32>) {
  %0 = dist.reshard %a <@mesh, [{}, {"x"}]> : tensor<8x4xf32>
  %1 = nn.relu %b : tensor<2x2xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<2x2xf32>
}
