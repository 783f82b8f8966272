// A sequence in zigzag order as real processes: tokens, and a table of positions, of which each rank takes its rows; sizes
// that nothing divides, more ranks than pairs of rows; promised bytes are those counted.
// RUN: %python %support/plans.py %s --rows 13 --work %t/f64 --shoalc "--optimizer adamw --lr 0.01" \
// RUN:   '["data"=1, "context"=1]' '["data"=2, "context"=2]' '["data"=1, "context"=3]' '["data"=1, "context"=5]'

// Each rank's kernel reads the whole sequence and writes the rank's rows; tokens and positions are reordered.
// RUN: sed 's/MESH/["data"=1, "context"=3]/' %s > %t.three.mlir
// RUN: shoalc %t.three.mlir --optimizer sgd --lr 0.1 --emit exec -o - | FileCheck %s
// CHECK-DAG: nn.zigzag %{{.*}} dim = 1 ranks = 3 offset = %{{.*}} : tensor<5x7xi64> -> tensor<5x3xi64>
// CHECK-DAG: nn.zigzag %{{.*}} dim = 0 ranks = 3 offset = %{{.*}} : tensor<7x4xf64> -> tensor<3x4xf64>

dist.mesh @mesh <MESH>

func.func @model(
    %t:  tensor<5x7xi64> {nn.input = "t"},
    %y:  tensor<5xi64>   {nn.input = "y"},
    %w:  tensor<6x4xf64> {nn.param = #nn.param<"w", init = uniform(-2.0, 2.0)>},
    %p:  tensor<7x4xf64> {nn.param = #nn.param<"p", init = uniform(-1.0, 1.0)>},
    %s:  tensor<7x4xf64> {nn.param = #nn.param<"s", init = uniform(-1.0, 1.0)>},
    %h:  tensor<4x6xf64> {nn.param = #nn.param<"h", init = uniform(-1.0, 1.0)>})
    -> (tensor<f64> {nn.loss}, tensor<5x6xf64> {nn.output = "logits"}) {
  %0 = nn.zigzag %t dim = 1 ranks = 3 {dist.shardings = [#dist.sharding<@mesh, [{?}, {"context"}]>]} : tensor<5x7xi64>
  %1 = nn.zigzag %p dim = 0 ranks = 3 {dist.shardings = [#dist.sharding<@mesh, [{"context"}, {}]>]} : tensor<7x4xf64>
  %2 = nn.embedding %w, %0 : (tensor<6x4xf64>, tensor<5x7xi64>) -> tensor<5x7x4xf64>
  %3 = nn.add %2, %1 : (tensor<5x7x4xf64>, tensor<7x4xf64>) -> tensor<5x7x4xf64>
  %4 = nn.tanh %3 : tensor<5x7x4xf64>
  %5 = nn.zigzag %4 dim = 1 ranks = 3 inverse {dist.shardings = [#dist.sharding<@mesh, [{?}, {}, {}]>]} : tensor<5x7x4xf64>
  %6 = nn.mul %5, %s : (tensor<5x7x4xf64>, tensor<7x4xf64>) -> tensor<5x7x4xf64>
  %7 = nn.reduce sum %6 dims = [1] : tensor<5x7x4xf64> -> tensor<5x4xf64>
  %8 = nn.matmul %7, %h : (tensor<5x4xf64>, tensor<4x6xf64>) -> tensor<5x6xf64>
  %loss, %lse = nn.cross_entropy mean %8, %y : (tensor<5x6xf64>, tensor<5xi64>) -> tensor<f64>
  return %loss, %8 : tensor<f64>, tensor<5x6xf64>
}
