// Metrics that no loss needs are told by stages, in evaluation, too, which has no backward passes: how many rows the last
// stage gets right, what the first makes by itself, and a sum of what both make.
// RUN: sed 's/<MESH>/<["pipe"=2]>/' %s > %t.mlir
// RUN: shoalc %t.mlir --optimizer adamw --grad-norm --microbatches 1 --verify-plan 2>&1 | FileCheck %s
// RUN: sed 's/{pipe.stage = . : i64}//' %t.mlir > %t.cut.mlir
// RUN: shoalc %t.cut.mlir --optimizer sgd --clip-grad-norm 0.3 --microbatches 3 --pipeline-schedule zb-h1 --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %t.mlir --optimizer adamw --mesh data=2,pipe=2 --microbatches 3 --zero 1 --verify-plan 2>&1 | FileCheck %s
// CHECK: the plan equals one device, --mode train: {{[1-9][0-9]*}} values
// CHECK: the plan equals one device, --mode eval: {{[1-9][0-9]*}} values
// RUN: shoalc %t.mlir --mode eval --microbatches 2 --emit local | FileCheck %s --check-prefix=EVAL
// EVAL: pipe.call forward stage 1
// EVAL-NOT: pipe.call backward
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 4 --shoalc "--optimizer adamw --lr 0.01 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=2] --microbatches 2'

dist.mesh @mesh <MESH>

func.func @metrics(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %w: tensor<5x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %h: tensor<5x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "logits"}, tensor<f64> {nn.metric = "accuracy"},
        tensor<f64> {nn.metric = "hidden"}, tensor<f64> {nn.metric = "both"}) {
  %0 = nn.matmul %x, %w {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %hidden = nn.reduce sum %0 dims = [0, 1] : tensor<6x5xf64> -> tensor<f64>
  %1 = nn.tanh %0 {pipe.stage = 1 : i64} : tensor<6x5xf64>
  %2 = nn.matmul %1, %h : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %loss, %lse = nn.cross_entropy mean %2, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  %zero = nn.constant dense<0.0> : tensor<f64>
  %one = nn.constant dense<1.0> : tensor<f64>
  %classes = nn.iota dim = 1 : tensor<6x4xi64>
  %labels = nn.reshape %y : tensor<6xi64> -> tensor<6x1xi64>
  %isLabel = nn.compare eq %classes, %labels : (tensor<6x4xi64>, tensor<6x1xi64>) -> tensor<6x4xi1>
  %largest = nn.reduce max %2 dims = [1] : tensor<6x4xf64> -> tensor<6xf64>
  %column = nn.reshape %largest : tensor<6xf64> -> tensor<6x1xf64>
  %isLargest = nn.compare ge %2, %column : (tensor<6x4xf64>, tensor<6x1xf64>) -> tensor<6x4xi1>
  %found = nn.select %isLargest, %one, %zero : (tensor<6x4xi1>, tensor<f64>, tensor<f64>) -> tensor<6x4xf64>
  %hits = nn.select %isLabel, %found, %zero : (tensor<6x4xi1>, tensor<6x4xf64>, tensor<f64>) -> tensor<6x4xf64>
  %accuracy = nn.reduce sum %hits dims = [0, 1] : tensor<6x4xf64> -> tensor<f64>
  %squares = nn.mul %2, %2 : (tensor<6x4xf64>, tensor<6x4xf64>) -> tensor<6x4xf64>
  %wide = nn.reduce sum %squares dims = [0, 1] : tensor<6x4xf64> -> tensor<f64>
  %both = nn.add %wide, %hidden : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss, %2, %accuracy, %hidden, %both : tensor<f64>, tensor<6x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>
}
