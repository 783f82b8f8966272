// Two losses of two stages are one sum, and one of them a metric, too: both are told by rank 0.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 6 --shoalc "--optimizer adamw --lr 0.01 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=3] --microbatches 4 --pipeline-schedule zb-h1' '["data"=2, "pipe"=3] --microbatches 2 --zero 3'
// Without stages of the file on more ranks than there are layers: every op is one to cut behind, up to ten of them.
// RUN: sed 's/{pipe.stage = . : i64}//; s/<MESH>/<["pipe"=8]>/' %s > %t.eight.mlir
// RUN: shoalc %t.eight.mlir --optimizer adamw --microbatches 3 --verify-plan 2>&1 | FileCheck %s --check-prefix=EIGHT
// EIGHT: the plan equals one device, --mode train: {{[1-9][0-9]*}} values
// EIGHT: the plan equals one device, --mode eval: {{[1-9][0-9]*}} values
// RUN: sed 's/{pipe.stage = . : i64}//; s/<MESH>/<["pipe"=4]>/' %s > %t.twelve.mlir
// RUN: %python %support/refused.py shoalc %t.twelve.mlir -o %t.exe --pipeline-schedule interleaved --pipeline-chunks 3 \
// RUN:   | FileCheck %s --check-prefix=TWELVE
// TWELVE: error: a pipeline needs a layer or an op outside of layers for each of its 12 stages (ranks along "pipe" times chunks), got: 10; take fewer ranks or chunks

dist.mesh @mesh <MESH>

func.func @two(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %w: tensor<5x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %a: tensor<5x4xf64> {nn.param = #nn.param<"a", init = normal(0.0, 0.5)>},
    %h: tensor<5x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "logits"}, tensor<f64> {nn.metric = "aux"}) {
  %0 = nn.matmul %x, %w {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %p = nn.matmul %0, %a : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %aux, %l1 = nn.cross_entropy mean %p, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  %1 = nn.tanh %0 {pipe.stage = 1 : i64} : tensor<6x5xf64>
  %2 = nn.matmul %1, %w : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %9 = nn.matmul %2, %h {pipe.stage = 2 : i64} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %last, %l2 = nn.cross_entropy mean %9, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  %loss = nn.add %last, %aux : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss, %9, %aux : tensor<f64>, tensor<6x4xf64>, tensor<f64>
}
