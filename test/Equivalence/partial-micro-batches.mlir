// Partial sums go into micro-batches as they are, and each rank's rows are exchanged.
// The contract of L1 asks for reduced arguments, so that no strategy makes these; annotated by hand they mean the same.
// RUN: shoal-opt %s --dist-number -o %t.global.mlir
// RUN: shoal-opt %t.global.mlir --dist-partition --dist-verify-local --dist-verify-plan="reference=%t.global.mlir" -o %t.local.mlir
// RUN: FileCheck %s --input-file=%t.local.mlir
// RUN: shoal-opt %t.local.mlir --dist-optimize-collectives --dist-expand-collectives --dist-verify-plan="reference=%t.global.mlir" -o /dev/null
// CHECK: dist.all_to_all {"y"}
// CHECK: dist.accumulate
// CHECK-NOT: dist.all_reduce
// CHECK: dist.yield
// CHECK: dist.all_reduce {"x", "y"} sum

dist.mesh @mesh <["x"=2, "y"=2]>

func.func @partial_micro_batches(
    %a: tensor<12x6xf64> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<6x3xf64> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<3xf64> {
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{"y"}, {}], unreduced=sum{"x"}>]}
      : (tensor<12x6xf64>, tensor<6x3xf64>) -> tensor<12x3xf64>
  %1 = dist.accumulate(%0) microbatches = 2 attributes {dist.arg_shardings = [#dist.sharding<@mesh, [{"y"}, {}], unreduced=sum{"x"}>]} {
  ^bb0(%m: tensor<6x3xf64>):
    %2 = nn.reduce sum %m dims = [0] : tensor<6x3xf64> -> tensor<3xf64>
    dist.yield %2 : tensor<3xf64>
  } : (tensor<12x3xf64>) -> tensor<3xf64>
  return %1 : tensor<3xf64>
}
