// What is made of parameters alone is read by two stages, and the one is made of the other: a gradient in which cotangents
// of both stages meet by way of each other. The first of the stages makes it.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 5 \
// RUN:   --shoalc "--optimizer adamw --lr 0.05 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=2] --microbatches 4' '["pipe"=2] --microbatches 4 --pipeline-schedule zb-h1' \
// RUN:   '["pipe"=2, "data"=2] --microbatches 3 --zero 3'

dist.mesh @mesh <MESH>

func.func @made_of_each_other(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %q: tensor<5x5xf64> {nn.param = #nn.param<"q", init = normal(0.0, 0.5)>},
    %r: tensor<5x5xf64> {nn.param = #nn.param<"r", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x5xf64> {nn.output = "logits"}) {
  %shared = nn.tanh %q : tensor<5x5xf64>
  %w0 = nn.mul %shared, %r : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %w1 = nn.add %w0, %shared : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %0 = nn.matmul %x, %w0 {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %1 = nn.matmul %0, %w1 {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %loss, %lse = nn.cross_entropy mean %1, %y : (tensor<6x5xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %1 : tensor<f64>, tensor<6x5xf64>
}
