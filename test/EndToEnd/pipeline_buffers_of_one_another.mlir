// A buffer that becomes twice a parameter is made by the ranks of that; a stage of another rank reads the buffer, and
// gets it. Of a sum that its terms' ranks make by themselves no other rank touches a term.
// RUN: shoalc %s --optimizer sgd --lr 0.05 --verify-plan 2>&1 | FileCheck %s
// CHECK: equals one device, --mode train

dist.mesh @mesh <["pipe"=4]>
func.func @of_one_another(%x: tensor<12x5xf64> {nn.input = "x"}, %y: tensor<12xi64> {nn.input = "y"}, %p0: tensor<5x5xf64> {nn.param = #nn.param<"p0", init = normal(0.0, 0.5)>}, %p1: tensor<5x5xf64> {nn.param = #nn.param<"p1", init = normal(0.0, 0.5)>}, %e0: tensor<5x5xf64> {nn.buffer = #nn.buffer<"e0", init = 0.5>}, %e1: tensor<5x5xf64> {nn.buffer = #nn.buffer<"e1", init = 0.5>}) -> (tensor<f64> {nn.loss}, tensor<12x5xf64> {nn.output = "o"}, tensor<5x5xf64> {nn.updates = "e0"}, tensor<5x5xf64> {nn.updates = "e1"}) {
  %d1 = nn.add %p1, %e0 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %d2 = nn.neg %p0 : tensor<5x5xf64>
  %d3 = nn.add %d2, %d1 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %d4 = nn.add %p0, %e1 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %d5 = nn.mul %d4, %e0 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %h6m = nn.matmul %x, %d1 {pipe.stage = 0 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h6 = nn.tanh %h6m : tensor<12x5xf64>
  %h7m = nn.matmul %h6, %d5 : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h7 = nn.tanh %h7m : tensor<12x5xf64>
  %h7r = nn.add %h7, %h6 : (tensor<12x5xf64>, tensor<12x5xf64>) -> tensor<12x5xf64>
  %h8m = nn.matmul %h7r, %d5 {pipe.stage = 1 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h8 = nn.tanh %h8m : tensor<12x5xf64>
  %h8r = nn.add %h8, %h7r : (tensor<12x5xf64>, tensor<12x5xf64>) -> tensor<12x5xf64>
  %h9m = nn.matmul %h8r, %d4 {pipe.stage = 2 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h9 = nn.tanh %h9m : tensor<12x5xf64>
  %h10m = nn.matmul %h9, %d2 : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h10 = nn.tanh %h10m : tensor<12x5xf64>
  %w12 = nn.mul %d2, %p0 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %w13 = nn.add %w12, %p1 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %h11m = nn.matmul %h10, %w13 {pipe.stage = 3 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h11 = nn.tanh %h11m : tensor<12x5xf64>
  %h11r = nn.add %h11, %h6 : (tensor<12x5xf64>, tensor<12x5xf64>) -> tensor<12x5xf64>
  %h14m = nn.matmul %h11r, %d4 : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h14 = nn.tanh %h14m : tensor<12x5xf64>
  %h14r = nn.add %h14, %h11r : (tensor<12x5xf64>, tensor<12x5xf64>) -> tensor<12x5xf64>
  %ce, %lse = nn.cross_entropy mean %h14r, %y : (tensor<12x5xf64>, tensor<12xi64>) -> tensor<f64>
  %d15 = nn.add %p1, %p1 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %d16s = nn.reduce sum %w13 dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %d16q = nn.tanh %d16s : tensor<f64>
  %d16 = nn.mul %w12, %d16q : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  return %ce, %h14r, %d15, %d16 : tensor<f64>, tensor<12x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>
}
