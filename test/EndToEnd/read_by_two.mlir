// One partial sum is the gradient of two parameters, of one of them through its tanh, and a weight is read three times: under
// every stage of ZeRO and in micro-batches the run equals one device's.
// RUN: %python %support/plans.py %s --rows 11 --work %t/sgd --shoalc "--optimizer sgd --lr 0.1 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1]' '["data"=2] --zero 1 --microbatches 2' '["data"=2] --zero 2' '["data"=2] --zero 3' '["data"=3] --zero 3' \
// RUN:   '["data"=1] --microbatches 3' '["data"=2] --zero 3 --microbatches 2'

dist.mesh @mesh <MESH>

func.func @read_by_two(
    %x: tensor<4x3xf64> {nn.input = "x"},
    %y: tensor<4xi64>   {nn.input = "y"},
    %w: tensor<3x3xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>},
    %a: tensor<3xf64>   {nn.param = #nn.param<"a", init = zeros>},
    %b: tensor<3xf64>   {nn.param = #nn.param<"b", init = constant(0.3)>})
    -> (tensor<f64> {nn.loss}, tensor<4x3xf64> {nn.output = "logits"}) {
  %0 = nn.matmul %x, %w : (tensor<4x3xf64>, tensor<3x3xf64>) -> tensor<4x3xf64>
  %1 = nn.add %0, %a : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4x3xf64>
  %2 = nn.tanh %b : tensor<3xf64>
  %3 = nn.add %1, %2 : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4x3xf64>
  %4 = nn.matmul %3, %w : (tensor<4x3xf64>, tensor<3x3xf64>) -> tensor<4x3xf64>
  %5 = nn.matmul %4, %w : (tensor<4x3xf64>, tensor<3x3xf64>) -> tensor<4x3xf64>
  %loss, %lse = nn.cross_entropy mean %5, %y : (tensor<4x3xf64>, tensor<4xi64>) -> tensor<f64>
  return %loss, %5 : tensor<f64>, tensor<4x3xf64>
}
