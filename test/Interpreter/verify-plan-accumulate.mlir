// What runs inside a micro-batch region is compared micro-batch by micro-batch: a fault that no sum shows is found.
// RUN: split-file %s %t
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: remark: the plan agrees with one device: 5 values and 1 results compared

// The rows of the batch where they lie, not those of the micro-batch: the sum over all is right, its parts are not.
// RUN: sed 's/accumulate(%%exchanged)/accumulate(%%x)/' %t/local.mlir > %t/rows.mlir
// RUN: not shoal-opt %t/rows.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: the plan differs from one device first at nn.exp (dist.id 0, micro-batch 0): element [2] on rank 1 is

// Unrolled, each copy of the body is compared with the micro-batch that it names.
// RUN: shoal-opt %t/local.mlir --dist-expand-collectives -o %t/unrolled.mlir
// RUN: shoal-opt %t/unrolled.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD

// A fault in the second one alone, and both in each other's place, which no sum shows.
// RUN: sed 's/start = 2 {dist.microbatch = 1/start = 1 {dist.microbatch = 1/' %t/unrolled.mlir > %t/second.mlir
// RUN: not shoal-opt %t/second.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SECOND
// SECOND: error: the plan differs from one device first at nn.exp (dist.id 0, micro-batch 1): element [0] on rank 0 is
// RUN: sed 's/start = 0 {dist.microbatch = 0/start = 2 {dist.microbatch = 0/; s/start = 2 {dist.microbatch = 1/start = 0 {dist.microbatch = 1/' %t/unrolled.mlir > %t/swapped.mlir
// RUN: not shoal-opt %t/swapped.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SWAPPED
// SWAPPED: error: the plan differs from one device first at nn.exp (dist.id 0, micro-batch 0): element [0] on rank 0 is

// A copy that does not say of which it is cannot be compared, nor one of a micro-batch that there is not.
// RUN: sed '/nn.exp/s/, dist.microbatch = 1 : i64//' %t/unrolled.mlir > %t/unnumbered.mlir
// RUN: not shoal-opt %t/unnumbered.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNNUMBERED
// UNNUMBERED: error: 'nn.exp' is a piece of dist.id 0, of which each of 2 micro-batches has its own: it must say whose it is, in dist.microbatch
// RUN: sed '/nn.exp/s/dist.microbatch = 1/dist.microbatch = 2/' %t/unrolled.mlir > %t/third.mlir
// RUN: not shoal-opt %t/third.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=THIRD
// THIRD: error: 'nn.exp' is of micro-batch 2, of dist.id 0 the reference has micro-batches: 2

// Micro-batches within micro-batches are counted over both.
// RUN: shoal-opt %t/nested.mlir --dist-verify-plan="reference=%t/nested_global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: shoal-opt %t/nested.mlir --dist-expand-collectives -o %t/nested_unrolled.mlir
// RUN: shoal-opt %t/nested_unrolled.mlir --dist-verify-plan="reference=%t/nested_global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NESTED
// NESTED: remark: the plan agrees with one device: 11 values and 1 results compared

//--- global.mlir
func.func @f(%x: tensor<8xf64>) -> tensor<f64> {
  %0 = dist.accumulate(%x) microbatches = 2 attributes {dist.id = 2} {
  ^bb0(%m: tensor<4xf64>):
    %1 = nn.exp %m {dist.id = 0} : tensor<4xf64>
    %2 = nn.reduce sum %1 dims = [0] {dist.id = 1} : tensor<4xf64> -> tensor<f64>
    dist.yield %2 : tensor<f64>
  } : (tensor<8xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

//--- local.mlir
dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf64> {dist.global = #dist.global<0, tensor<8xf64>, <@mesh, [{"x"}]>>})
    -> (tensor<f64> {dist.global = #dist.global<0, tensor<f64>, <@mesh, []>>}) {
  // Rows 0 1 | 2 3 | 4 5 | 6 7: devices hold 0-3 and 4-7, of the micro-batches 0-3 and 4-7 they need a half each.
  %parts = nn.reshape %x : tensor<4xf64> -> tensor<1x4xf64>
  %moved = dist.all_to_all {"x"} split = 1 concat = 0 %parts : tensor<1x4xf64> -> tensor<2x2xf64>
  %exchanged = nn.reshape %moved : tensor<2x2xf64> -> tensor<4xf64>
  %0 = dist.accumulate(%exchanged) microbatches = 2 attributes {dist.globals = [#dist.global<2, tensor<f64>, <@mesh, [], unreduced=sum{"x"}>>]} {
  ^bb0(%m: tensor<2xf64>):
    %1 = nn.exp %m {dist.globals = [#dist.global<0, tensor<4xf64>, <@mesh, [{"x"}]>>]} : tensor<2xf64>
    %2 = nn.reduce sum %1 dims = [0] {dist.globals = [#dist.global<1, tensor<f64>, <@mesh, [], unreduced=sum{"x"}>>]} : tensor<2xf64> -> tensor<f64>
    dist.yield %2 : tensor<f64>
  } : (tensor<4xf64>) -> tensor<f64>
  %3 = dist.all_reduce {"x"} sum %0 : tensor<f64>
  return %3 : tensor<f64>
}

//--- nested_global.mlir
func.func @f(%x: tensor<8xf64>) -> tensor<f64> {
  %0 = dist.accumulate(%x) microbatches = 2 attributes {dist.id = 3} {
  ^bb0(%m: tensor<4xf64>):
    %1 = dist.accumulate(%m) microbatches = 2 attributes {dist.id = 2} {
    ^bb0(%k: tensor<2xf64>):
      %2 = nn.exp %k {dist.id = 0} : tensor<2xf64>
      %3 = nn.reduce sum %2 dims = [0] {dist.id = 1} : tensor<2xf64> -> tensor<f64>
      dist.yield %3 : tensor<f64>
    } : (tensor<4xf64>) -> tensor<f64>
    dist.yield %1 : tensor<f64>
  } : (tensor<8xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

//--- nested.mlir
dist.mesh @mesh <["x"=1]>
func.func @f(%x: tensor<8xf64> {dist.global = #dist.global<0, tensor<8xf64>, <@mesh, [{}]>>})
    -> (tensor<f64> {dist.global = #dist.global<0, tensor<f64>, <@mesh, []>>}) {
  %0 = dist.accumulate(%x) microbatches = 2 attributes {dist.globals = [#dist.global<3, tensor<f64>, <@mesh, []>>]} {
  ^bb0(%m: tensor<4xf64>):
    %1 = dist.accumulate(%m) microbatches = 2 attributes {dist.globals = [#dist.global<2, tensor<f64>, <@mesh, []>>]} {
    ^bb0(%k: tensor<2xf64>):
      %2 = nn.exp %k {dist.globals = [#dist.global<0, tensor<2xf64>, <@mesh, [{}]>>]} : tensor<2xf64>
      %3 = nn.reduce sum %2 dims = [0] {dist.globals = [#dist.global<1, tensor<f64>, <@mesh, []>>]} : tensor<2xf64> -> tensor<f64>
      dist.yield %3 : tensor<f64>
    } : (tensor<4xf64>) -> tensor<f64>
    dist.yield %1 : tensor<f64>
  } : (tensor<8xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}
