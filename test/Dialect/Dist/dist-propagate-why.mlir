// RUN: shoal-opt %s --split-input-file --dist-propagate | FileCheck %s
// RUN: shoal-opt %s --split-input-file --dist-propagate --dist-partition --dist-verify-local --dist-explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOCAL

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

// -----

// A sum of partial values is partial for the annotations of both; it is reduced for both, and rid of by both.
// CHECK-LABEL: func.func @sum_of_partials
// CHECK: nn.add {{.*}}dist.why = {x = [#dist.cause<"the annotation of \22v\22 at dist-propagate-why.mlir:{{.*}}">, #dist.cause<"the annotation of \22w\22 at dist-propagate-why.mlir:{{.*}}">]}
// CHECK-NEXT: nn.relu
// LOCAL-LABEL: collective in @sum_of_partials
// LOCAL: for operand 0 of nn.relu: [{}, {}] sum{"x"} -> [{}, {}]
// LOCAL-NEXT: because the annotation of "v" at {{.*}}; the annotation of "w" at {{.*}}
// LOCAL: removed by change the annotation of "v" at {{.*}} and the annotation of "w" at {{.*}}: what nn.add combines lies on all ranks of {"x"}
dist.mesh @mesh <["x"=2]>
func.func @sum_of_partials(%a: tensor<8x4xf32>, %b: tensor<8x6xf32>,
                           %v: tensor<4x2xf32> {nn.param = #nn.param<"v", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                           %w: tensor<6x2xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  %0 = nn.matmul %a, %v : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.matmul %b, %w : (tensor<8x6xf32>, tensor<6x2xf32>) -> tensor<8x2xf32>
  %2 = nn.add %0, %1 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = nn.relu %2 : tensor<8x2xf32>
  return %3 : tensor<8x2xf32>
}
