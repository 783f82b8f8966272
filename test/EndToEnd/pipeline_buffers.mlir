// Buffers that become parameters, or sums of them, are where these are, and everywhere where nobody has all; ZeRO-3
// gathers a parameter for that, too.
// RUN: shoalc %s --mesh pipe=4 --optimizer adamw --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh pipe=4,data=2 --optimizer adamw --microbatches 2 --zero 3 --verify-plan 2>&1 | FileCheck %s
// CHECK: equals one device, --mode train
// CHECK: equals one device, --mode eval

func.func @buffers(%x: tensor<12x5xf64> {nn.input = "x"}, %y: tensor<12xi64> {nn.input = "y"}, %p0: tensor<5x5xf64> {nn.param = #nn.param<"p0", init = normal(0.0, 0.5)>}, %p1: tensor<5x5xf64> {nn.param = #nn.param<"p1", init = normal(0.0, 0.5)>}, %p2: tensor<5x5xf64> {nn.param = #nn.param<"p2", init = normal(0.0, 0.5)>}, %e0: tensor<5x5xf64> {nn.buffer = #nn.buffer<"e0", init = 0.5>}, %e1: tensor<5x5xf64> {nn.buffer = #nn.buffer<"e1", init = 0.5>}) -> (tensor<f64> {nn.loss}, tensor<12x5xf64> {nn.output = "o"}, tensor<5x5xf64> {nn.updates = "e0"}, tensor<5x5xf64> {nn.updates = "e1"}, tensor<f64> {nn.metric = "m"}) {
  %d1s = nn.reduce sum %p1 dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %d1 = nn.mul %p0, %d1s : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  %h2m = nn.matmul %x, %p0 {pipe.stage = 0 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %w4 = nn.mul %p2, %p1 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %h3m = nn.matmul %h2m, %w4 {pipe.stage = 1 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %h5m = nn.matmul %h3m, %d1 {pipe.stage = 2 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %w8 = nn.add %p1, %p2 : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %h7m = nn.matmul %h5m, %w8 {pipe.stage = 3 : i64} : (tensor<12x5xf64>, tensor<5x5xf64>) -> tensor<12x5xf64>
  %ce, %lse = nn.cross_entropy mean %h7m, %y : (tensor<12x5xf64>, tensor<12xi64>) -> tensor<f64>
  %met = nn.reduce sum %p2 dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  return %ce, %h7m, %w8, %p1, %met : tensor<f64>, tensor<12x5xf64>, tensor<5x5xf64>, tensor<5x5xf64>, tensor<f64>
}
