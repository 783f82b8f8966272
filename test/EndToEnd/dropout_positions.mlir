// Dropout by positions as real processes: a sequence of 7 in zigzag order drops the same elements on one rank and on ranks
// that hold 4 + 3, 3 + 3 + 1 and 2 + 2 + 2 + 1 + 0 of its rows, with data parallelism, recomputed, in micro-batches.
// RUN: %python %support/plans.py %s --rows 13 --work %t/f64 --shoalc "--optimizer adamw --lr 0.01" \
// RUN:   '["data"=1, "context"=1]' '["data"=2, "context"=2]' '["data"=1, "context"=3] --recompute full' '["data"=1, "context"=5]' \
// RUN:   '["data"=2, "context"=3] --microbatches 2' '["context"=2, "data"=1] --microbatches 3 --zero 3'

// One kernel takes the positions of the rank's rows, for both ops; dropout is fused with what makes and reads its rows.
// RUN: sed 's/MESH/["data"=1, "context"=3]/' %s > %t.three.mlir
// RUN: shoalc %t.three.mlir --optimizer sgd --lr 0.1 --emit exec -o - | FileCheck %s
// CHECK-COUNT-1: nn.dynamic_slice
// CHECK-NOT: nn.dynamic_slice
// CHECK: func.func private @{{.*}}add_dropout{{.*}}tanh

dist.mesh @mesh <MESH>

func.func @model(
    %t:  tensor<5x7xi64> {nn.input = "t"},
    %y:  tensor<5xi64>   {nn.input = "y"},
    %w:  tensor<6x4xf64> {nn.param = #nn.param<"w", init = uniform(-2.0, 2.0)>},
    %p:  tensor<7x4xf64> {nn.param = #nn.param<"p", init = uniform(-1.0, 1.0)>},
    %h:  tensor<4x6xf64> {nn.param = #nn.param<"h", init = uniform(-1.0, 1.0)>})
    -> (tensor<f64> {nn.loss}, tensor<5x6xf64> {nn.output = "logits"}) {
  %i = nn.iota dim = 0 : tensor<7xi64>
  %at = nn.zigzag %i dim = 0 ranks = 3 : tensor<7xi64>
  %0 = nn.zigzag %t dim = 1 ranks = 3 {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{?}, {"context"}]>]} : tensor<5x7xi64>
  %1 = nn.zigzag %p dim = 0 ranks = 3 {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{"context"}, {}]>]} : tensor<7x4xf64>
  %2 = nn.embedding %w, %0 {nn.layer = "h.0"} : (tensor<6x4xf64>, tensor<5x7xi64>) -> tensor<5x7x4xf64>
  %3 = nn.add %2, %1 {nn.layer = "h.0"} : (tensor<5x7x4xf64>, tensor<7x4xf64>) -> tensor<5x7x4xf64>
  %4 = nn.dropout %3 rate = 0.25 id = 0 positions = %at dim = 1 {nn.layer = "h.0"} : tensor<5x7x4xf64>, tensor<7xi64>
  %5 = nn.tanh %4 {nn.layer = "h.0"} : tensor<5x7x4xf64>
  %6 = nn.dropout %5 rate = 0.25 id = 1 positions = %at dim = 1 {nn.layer = "h.1"} : tensor<5x7x4xf64>, tensor<7xi64>
  %7 = nn.reduce sum %6 dims = [1] {nn.layer = "h.1"} : tensor<5x7x4xf64> -> tensor<5x4xf64>
  %8 = nn.matmul %7, %h {nn.layer = "h.1"} : (tensor<5x4xf64>, tensor<4x6xf64>) -> tensor<5x6xf64>
  %loss, %lse = nn.cross_entropy mean %8, %y : (tensor<5x6xf64>, tensor<5xi64>) -> tensor<f64>
  return %loss, %8 : tensor<f64>, tensor<5x6xf64>
}
