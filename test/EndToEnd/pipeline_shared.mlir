// Pipelines in real processes are one device: stages that the file says, a weight of three stages, a sum past two of
// them (what crosses several boundaries is handed on from stage to stage), a mask of the inputs in all of them, and no
// layers. 23 rows in batches of 6: micro-batches do not divide them, and some of the last have no row.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 6 \
// RUN:   --shoalc "--optimizer adam --lr 0.01 --clip-grad-norm 0.3 --grad-norm" '["pipe"=1]' '["pipe"=4]' \
// RUN:   '["pipe"=4] --microbatches 4 --pipeline-schedule zb-h1' \
// RUN:   '["pipe"=2] --microbatches 3 --pipeline-schedule zb-v' \
// RUN:   '["pipe"=2, "data"=2], device_ids=[2, 0, 3, 1] --microbatches 6 --pipeline-schedule interleaved --zero 1' \
// RUN:   '["data"=2, "pipe"=4] --microbatches 2 --pipeline-schedule zb-h2 --zero 3'

dist.mesh @mesh <MESH>

func.func @shared(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %w: tensor<5x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %v: tensor<5x5xf64> {nn.param = #nn.param<"v", init = normal(0.0, 0.5)>},
    %b: tensor<5xf64> {nn.param = #nn.param<"b", init = normal(0.0, 0.5)>},
    %h: tensor<5x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "logits"}) {
  %zero = nn.constant dense<0.0> : tensor<f64>
  %on = nn.compare gt %x, %zero : (tensor<6x5xf64>, tensor<f64>) -> tensor<6x5xi1>
  %mask = nn.cast %on : tensor<6x5xi1> -> tensor<6x5xf64>
  %0 = nn.matmul %x, %w {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %skip = nn.mul %0, %mask : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %1 = nn.matmul %skip, %w {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %2 = nn.add %1, %b : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %3 = nn.mul %2, %mask : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %4 = nn.tanh %3 {pipe.stage = 2 : i64} : tensor<6x5xf64>
  %5 = nn.matmul %4, %w : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %6 = nn.matmul %5, %v : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %7 = nn.mul %6, %mask : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %8 = nn.add %7, %skip {pipe.stage = 3 : i64} : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %9 = nn.matmul %8, %h : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %loss, %lse = nn.cross_entropy mean %9, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %9 : tensor<f64>, tensor<6x4xf64>
}
