// Fewer and earlier collectives.
// RUN: shoal-opt %s --split-input-file --dist-optimize-collectives | FileCheck %s
// RUN: shoal-opt %s --split-input-file --dist-optimize-collectives=overlap=false | FileCheck %s --check-prefix=LATE

// Two equal gathers become one, for the reasons of both.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @equal
// CHECK: %[[G:.*]] = dist.all_gather {{.*}}reason = "one; two"
// CHECK-NOT: dist.all_gather
// CHECK: nn.add %[[G]], %[[G]]
func.func @equal(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = dist.all_gather {"x"} dim = 0 %a {reason = "one"} : tensor<4xf32> -> tensor<8xf32>
  %1 = dist.all_gather {"x"} dim = 0 %a {reason = "two"} : tensor<4xf32> -> tensor<8xf32>
  %2 = nn.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// A reduction whose only user slices it is a reduce-scatter; axes that are not sliced are reduced after it.
dist.mesh @mesh <["x"=2, "y"=2]>
// CHECK-LABEL: @scattered
// CHECK: %[[S:.*]] = dist.reduce_scatter {"x"} sum dim = 0 %{{.*}} {reason = "r; s"} : tensor<8xf32> -> tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"y"} sum %[[S]] {reason = "r"} : tensor<4xf32>
// CHECK-NEXT: return %[[R]]
func.func @scattered(%a: tensor<8xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce {"x", "y"} sum %a {reason = "r"} : tensor<8xf32>
  %1 = dist.all_slice {"x"} dim = 0 %0 {reason = "s"} : tensor<8xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Someone else reads the whole sum: the all-reduce stays.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @read_whole
// CHECK: dist.all_reduce
// CHECK: dist.all_slice
func.func @read_whole(%a: tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce {"x"} sum %a {reason = "r"} : tensor<8xf32>
  %1 = dist.all_slice {"x"} dim = 0 %0 {reason = "s"} : tensor<8xf32> -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<8xf32>
}

// -----

// A sum of sums over devices is reduced once; a sum of maxima is not.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @sum_of_sums
// CHECK-DAG: dist.all_reduce {"x"} max %{{.*}} {reason = "c"}
// CHECK-DAG: dist.all_reduce {"x"} max %{{.*}} {reason = "d"}
// CHECK: %[[S:.*]] = nn.add %{{.*}}, %{{.*}}
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} sum %[[S]]
func.func @sum_of_sums(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce {"x"} sum %a {reason = "a"} : tensor<8xf32>
  %1 = dist.all_reduce {"x"} sum %b {reason = "b"} : tensor<8xf32>
  %2 = nn.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = dist.all_reduce {"x"} max %a {reason = "c"} : tensor<8xf32>
  %4 = dist.all_reduce {"x"} max %b {reason = "d"} : tensor<8xf32>
  %5 = nn.add %3, %4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2, %5 : tensor<8xf32>, tensor<8xf32>
}

// -----

// Micro-batches are summed first and reduced once.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @accumulated
// CHECK: %[[A:.*]] = dist.accumulate
// CHECK-NOT: dist.all_reduce
// CHECK: dist.yield
// CHECK: %[[R:.*]] = dist.all_reduce {"x"} sum %[[A]]
// CHECK: return %[[R]]
func.func @accumulated(%a: tensor<8x4xf32>) -> tensor<4xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    %2 = dist.all_reduce {"x"} sum %1 {reason = "r"} : tensor<4xf32>
    dist.yield %2 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A collective starts where its operand is ready, in the order in which operands become ready; its user
// stays.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @early
// CHECK: %[[A:.*]] = nn.neg
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} sum %[[A]]
// CHECK-NEXT: dist.all_gather {"x"} dim = 0 %[[A]]
// CHECK-NEXT: nn.exp
// LATE-LABEL: @early
// LATE: nn.neg
// LATE-NEXT: nn.exp
// LATE-NEXT: dist.all_reduce
func.func @early(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<16xf32>) {
  %0 = nn.neg %a : tensor<8xf32>
  %1 = nn.exp %a : tensor<8xf32>
  %2 = dist.all_reduce {"x"} sum %0 {reason = "r"} : tensor<8xf32>
  %3 = nn.add %1, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = dist.all_gather {"x"} dim = 0 %0 {reason = "g"} : tensor<8xf32> -> tensor<16xf32>
  return %3, %4 : tensor<8xf32>, tensor<16xf32>
}

// -----

// What was written behind a send stays behind it.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @behind_barrier
// CHECK: dist.barrier
// CHECK: dist.all_reduce
func.func @behind_barrier(%a: tensor<8xf32>) -> tensor<8xf32> {
  dist.barrier {"x"}
  %0 = dist.all_reduce {"x"} sum %a {reason = "r"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Who runs a collective stays with it in every rewrite; what is not run by the same positions stays apart.
dist.mesh @mesh <["z"=2, "x"=2, "y"=2]>
// CHECK-LABEL: @positions
// CHECK: dist.reduce_scatter {"x"} sum {{.*}} {dist.at = array<i64: 0, 1, 2, 3>}
// CHECK-NEXT: dist.all_reduce {"y"} sum {{.*}} {dist.at = array<i64: 0, 1, 2, 3>}
func.func @positions(%a: tensor<8xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce {"x", "y"} sum %a {dist.at = array<i64: 0, 1, 2, 3>} : tensor<8xf32>
  %1 = dist.all_slice {"x"} dim = 0 %0 : tensor<8xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @positions_of_sums
// CHECK: dist.all_reduce {"x"} sum %{{.*}} {dist.at = array<i64: 1, 3>}
// CHECK: dist.all_reduce {"x"} sum %{{[a-z0-9]*}} : tensor<8xf32>
// CHECK: %[[S:.*]] = nn.add
// CHECK: dist.all_reduce {"x"} sum %[[S]] {dist.at = array<i64: 0, 2>}
func.func @positions_of_sums(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce {"x"} sum %a {dist.at = array<i64: 0, 2>} : tensor<8xf32>
  %1 = dist.all_reduce {"x"} sum %b {dist.at = array<i64: 0, 2>} : tensor<8xf32>
  %2 = nn.add %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = dist.all_reduce {"x"} sum %a {dist.at = array<i64: 1, 3>} : tensor<8xf32>
  %4 = dist.all_reduce {"x"} sum %b : tensor<8xf32>
  %5 = nn.add %3, %4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2, %5 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @positions_outside
// CHECK: dist.accumulate
// CHECK-NOT: dist.all_reduce
// CHECK: dist.yield
// CHECK: dist.all_reduce {"x"} sum %{{.*}} {dist.at = array<i64: 0, 2>}
func.func @positions_outside(%a: tensor<8xf32>) -> tensor<4xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4xf32>):
    %1 = dist.all_reduce {"x"} sum %m {dist.at = array<i64: 0, 2>} : tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Cotangents arrive in turn, partial ones between whole ones: the partial ones are summed and reduced once. What an interior sum
// stood for in the global program is gone with it.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @between
// CHECK-SAME: %[[W:[^:]*]]: tensor<8xf32>, %[[V:[^:]*]]: tensor<8xf32>, %[[A:[^:]*]]: tensor<8xf32>, %[[B:[^:]*]]: tensor<8xf32>
// CHECK-DAG: %[[S:.*]] = nn.add %[[A]], %[[B]] : (
// CHECK-DAG: %[[R:.*]] = dist.all_reduce {"x"} sum %[[S]]
// CHECK-DAG: %[[WV:.*]] = nn.add %[[W]], %[[V]] : (
// CHECK: %[[T:.*]] = nn.add %[[WV]], %[[R]] {dist.globals
// CHECK-NOT: all_reduce
// CHECK: return %[[T]]
func.func @between(%w: tensor<8xf32>, %v: tensor<8xf32>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = dist.all_reduce {"x"} sum %a {reason = "a"} : tensor<8xf32>
  %1 = nn.add %w, %0 {dist.globals = [#dist.global<0, tensor<8xf32>, <@mesh, [{}]>>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = nn.add %1, %v {dist.globals = [#dist.global<1, tensor<8xf32>, <@mesh, [{}]>>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = dist.all_reduce {"x"} sum %b {reason = "b"} : tensor<8xf32>
  %4 = nn.add %2, %3 {dist.globals = [#dist.global<2, tensor<8xf32>, <@mesh, [{}]>>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// So are reductions that scatter, along one dimension; an interior sum that someone else reads stays, and both reductions with it.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @scattered_sums
// CHECK: %[[S:.*]] = nn.add %{{.*}}, %{{.*}} : (tensor<8xf32>
// CHECK: dist.reduce_scatter {"x"} sum dim = 0 %[[S]]
// CHECK-NOT: reduce_scatter
// CHECK: return
func.func @scattered_sums(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4xf32> {
  %0 = dist.reduce_scatter {"x"} sum dim = 0 %a {reason = "a"} : tensor<8xf32> -> tensor<4xf32>
  %1 = dist.reduce_scatter {"x"} sum dim = 0 %b {reason = "b"} : tensor<8xf32> -> tensor<4xf32>
  %2 = nn.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
// CHECK-LABEL: @read_between
// CHECK-COUNT-2: dist.all_reduce
func.func @read_between(%w: tensor<8xf32>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.all_reduce {"x"} sum %a {reason = "a"} : tensor<8xf32>
  %1 = nn.add %w, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = dist.all_reduce {"x"} sum %b {reason = "b"} : tensor<8xf32>
  %3 = nn.add %1, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}

// -----

// What is fetched again is not what was fetched first, and does not start with it; fetched again twice, it is one.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @refetched
// CHECK: dist.all_gather {"x"} dim = 0 %{{.*}} {reason
// CHECK: nn.neg
// CHECK-NEXT: nn.exp
// CHECK-NEXT: dist.all_gather {"x"} dim = 0 %{{.*}} {dist.refetch
// CHECK-NOT: all_gather
// CHECK: return
func.func @refetched(%a: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = dist.all_gather {"x"} dim = 0 %a {reason = "one"} : tensor<4xf32> -> tensor<8xf32>
  %1 = nn.neg %0 : tensor<8xf32>
  %2 = nn.exp %1 : tensor<8xf32>
  %3 = dist.all_gather {"x"} dim = 0 %a {dist.refetch, reason = "one"} : tensor<4xf32> -> tensor<8xf32>
  %4 = dist.all_gather {"x"} dim = 0 %a {dist.refetch, reason = "two"} : tensor<4xf32> -> tensor<8xf32>
  %5 = nn.mul %2, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = nn.mul %2, %4 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %5, %6 : tensor<8xf32>, tensor<8xf32>
}

// -----

// One that stands for two has the causes of both: equal ones, and a sum of two sums.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @causes
// CHECK: dist.all_reduce {"x"} sum %arg0 {reason = #dist.reason<"first" because <"the annotation of a">, <"the heads" by "--tensor-parallel">>}
// CHECK: nn.add
// CHECK: dist.all_reduce {"x"} sum %{{.*}} {reason = #dist.reason<"{{.*}}" because <"the vocabulary" by "--tensor-parallel">, <"the columns" by "--tensor-parallel">>}
// CHECK-NOT: dist.all_reduce
func.func @causes(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce {"x"} sum %a {reason = #dist.reason<"first" because <"the annotation of a">>} : tensor<4xf32>
  %1 = dist.all_reduce {"x"} sum %a {reason = #dist.reason<"second" because <"the heads" by "--tensor-parallel">>} : tensor<4xf32>
  %2 = dist.all_reduce {"x"} sum %b {reason = #dist.reason<"third" because <"the columns" by "--tensor-parallel">>} : tensor<4xf32>
  %3 = dist.all_reduce {"x"} sum %c {reason = #dist.reason<"fourth" because <"the vocabulary" by "--tensor-parallel">>} : tensor<4xf32>
  %4 = nn.add %2, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The same cause in two layers is one that names no layer; a reason is a line, and says when there are more.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @many_causes
// CHECK: dist.all_reduce {"x"} sum %arg0 {reason = #dist.reason<"first" because <"the heads" by "--tensor-parallel">>}
// CHECK: dist.all_reduce {"x"} sum %arg1 {reason = #dist.reason<"third" because <"1">, <"2">, <"3">, <"4">, <"others">>}
func.func @many_causes(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce {"x"} sum %a {reason = #dist.reason<"first" because <"the heads" in "h.0" by "--tensor-parallel">>} : tensor<4xf32>
  %1 = dist.all_reduce {"x"} sum %a {reason = #dist.reason<"second" because <"the heads" in "h.1" by "--tensor-parallel">>} : tensor<4xf32>
  %2 = dist.all_reduce {"x"} sum %b {reason = #dist.reason<"third" because <"1">, <"2">>} : tensor<4xf32>
  %3 = dist.all_reduce {"x"} sum %b {reason = #dist.reason<"fourth" because <"2">, <"3">, <"4">, <"5">, <"6">>} : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What is waited for apart says itself when it starts, however long its operand has been ready.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @hop
// CHECK: nn.relu
// CHECK-NEXT: dist.permute_start
// CHECK-NEXT: nn.neg
func.func @hop(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nn.relu %a : tensor<4xf32>
  %1 = dist.permute_start {"x"} from [0, 1] to [1, 0] %a {reason = "r"} : tensor<4xf32> -> !dist.future<tensor<4xf32>>
  %2 = nn.neg %0 : tensor<4xf32>
  %3 = dist.wait %1 : !dist.future<tensor<4xf32>> -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}
