// An add of parameters that a rank has both of is that rank's, whoever else has one of them: no exchange for it, which
// would stand in front of the stages. Exchanged are a gradient of two stages and the loss.
// RUN: shoalc %s --mesh pipe=3 --microbatches 4 --optimizer sgd --verify-plan 2>&1 | FileCheck %s --check-prefix=EQUAL
// RUN: shoalc %s --mesh pipe=3 --microbatches 4 --optimizer sgd --emit exec -o - | FileCheck %s
// EQUAL: equals one device, --mode train
// CHECK-LABEL: exec.program @needs
// CHECK-NOT: exec.all_reduce {"pipe"} {{.*}} : <5x5xf64>
// CHECK: exec.gemm

func.func @needs(%x: tensor<12x5xf64> {nn.input = "x"}, %y: tensor<12xi64> {nn.input = "y"}, %p0: tensor<5x5xf64> {nn.param = #nn.param<"p0", init = normal(0.0, 0.5)>}, %p1: tensor<5x5xf64> {nn.param = #nn.param<"p1", init = normal(0.0, 0.5)>}, %p2: tensor<5x5xf64> {nn.param = #nn.param<"p2", init = normal(0.0, 0.5)>}) -> (tensor<f64> {nn.loss}, tensor<12x5xf64> {nn.output = "o"}) {
  %h4m = nn.matmul %x, %p1 {pipe.stage = 0 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h6m = nn.matmul %h4m, %p1 {pipe.stage = 1 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %w9 = nn.mul %p1, %p0 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %w10 = nn.add %w9, %p1 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %w11 = nn.mul %w10, %p2 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %h8m = nn.matmul %h6m, %w11 {pipe.stage = 2 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h8r = nn.add %h8m, %h4m : (tensor<12x5xf64>, tensor<12x5xf64>) -> tensor<12x5xf64>
  %ce, %lse = nn.cross_entropy mean %h8r, %y : (tensor<12x5xf64>, tensor<12xi64>) -> tensor<f64>
  %d12s = nn.reduce sum %p0 dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %d12 = nn.mul %w9, %d12s : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  %pen = nn.reduce sum %d12 dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %loss = nn.add %ce, %pen : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss, %h8r : tensor<f64>, tensor<12x5xf64>
}
