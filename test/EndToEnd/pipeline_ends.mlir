// The first stage of a pipeline is an embedding and the last a loss without parameters, and outputs come from both.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 6 --shoalc "--optimizer adamw --lr 0.01 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=3]' '["pipe"=3] --microbatches 4 --pipeline-schedule zb-h2' \
// RUN:   '["data"=2, "pipe"=3] --microbatches 3 --pipeline-schedule gpipe --zero 2'

dist.mesh @mesh <MESH>

func.func @ends(
    %ids: tensor<6x3xi64> {nn.input = "ids"},
    %y: tensor<6x3xi64> {nn.input = "y"},
    %e: tensor<7x5xf64> {nn.param = #nn.param<"e", init = normal(0.0, 0.5)>},
    %w: tensor<5x7xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x3x7xf64> {nn.output = "logits"}, tensor<6x3x5xf64> {nn.output = "tokens"}) {
  %0 = nn.embedding %e, %ids {pipe.stage = 0 : i64} : (tensor<7x5xf64>, tensor<6x3xi64>) -> tensor<6x3x5xf64>
  %1 = nn.relu %0 {pipe.stage = 1 : i64} : tensor<6x3x5xf64>
  %2 = nn.matmul %1, %w : (tensor<6x3x5xf64>, tensor<5x7xf64>) -> tensor<6x3x7xf64>
  %loss, %lse = nn.cross_entropy mean %2, %y {pipe.stage = 2 : i64}
      : (tensor<6x3x7xf64>, tensor<6x3xi64>) -> tensor<f64>
  return %loss, %2, %0 : tensor<f64>, tensor<6x3x7xf64>, tensor<6x3x5xf64>
}
