// What runs inside a micro-batch region is compared micro-batch by micro-batch: a fault that no sum shows is found.
// RUN: split-file %s %t
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: remark: the plan agrees with one device: 5 values and 1 results compared

// The rows of the batch where they lie, not those of the micro-batch: the sum over all is right, its parts are not.
// RUN: sed 's/accumulate(%%exchanged)/accumulate(%%x)/' %t/local.mlir > %t/rows.mlir
// RUN: not shoal-opt %t/rows.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: the plan differs from one device first at nn.exp (dist.id 0, micro-batch 0): element [2] on rank 1 is

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
