// What a step does beside its stages reads parameters where the ranks keep them: a penalty of the loss, a metric, a
// moving average, a weight divided by its norm; or returns them, as a metric or as what a buffer is next. Training and its evaluation agree on who keeps what.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 6 --shoalc "--optimizer adamw --lr 0.01 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=2] --microbatches 3' '["pipe"=2, "data"=2] --microbatches 2 --pipeline-schedule zb-h1 --zero 3'
// RUN: sed 's/<MESH>/<["pipe"=2, "data"=2]>/' %s > %t.mlir
// RUN: shoalc %t.mlir --optimizer adamw --microbatches 2 --zero 1 --dtype bf16 --emit exec --verify-plan -o %t.exec 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EQUAL
// EQUAL: the plan equals one device, --mode train: {{[1-9][0-9]*}} values
// EQUAL: the plan equals one device, --mode eval: {{[1-9][0-9]*}} values
// A rank of the first stage holds nothing of the second, in either program.
// RUN: shoalc %t.mlir --optimizer adamw --microbatches 2 --emit exec -o - | FileCheck %s --check-prefix=HELD
// HELD-COUNT-2: exec.arg param "v" {{.*}}{exec.at = array<i64: 0, 1>}
// RUN: shoalc %t.mlir --optimizer adamw --mode eval --emit local -o - | FileCheck %s --check-prefix=KEPT
// KEPT: "v"{{[^%]*}}pipe.ranks = array<i64: 0>{{.*}}"h"{{[^%]*}}pipe.ranks = array<i64: 1>

dist.mesh @mesh <MESH>

func.func @rest(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %w: tensor<5x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %v: tensor<5x5xf64> {nn.param = #nn.param<"v", init = normal(0.0, 0.5)>},
    %h: tensor<5x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>},
    %t: tensor<f64> {nn.param = #nn.param<"t", init = ones>},
    %ema: tensor<5x5xf64> {nn.buffer = #nn.buffer<"ema", init = 0.0>},
    %last: tensor<5x4xf64> {nn.buffer = #nn.buffer<"last", init = 0.0>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "logits"}, tensor<f64> {nn.metric = "norms"}, tensor<f64> {nn.metric = "temperature"},
        tensor<5x5xf64> {nn.updates = "ema"}, tensor<5x4xf64> {nn.updates = "last"}) {
  %ww = nn.mul %w, %w : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %square = nn.reduce sum %ww dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %norm = nn.sqrt %square : tensor<f64>
  %unit = nn.div %w, %norm : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  %0 = nn.matmul %x, %unit {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %1 = nn.tanh %0 : tensor<6x5xf64>
  %cool = nn.mul %1, %t : (tensor<6x5xf64>, tensor<f64>) -> tensor<6x5xf64>
  %2 = nn.matmul %cool, %v : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %logits = nn.matmul %2, %h {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %ce, %lse = nn.cross_entropy mean %logits, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  %vv = nn.mul %v, %v : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  %v2 = nn.reduce sum %vv dims = [0, 1] : tensor<5x5xf64> -> tensor<f64>
  %hh = nn.mul %h, %h : (tensor<5x4xf64>, tensor<5x4xf64>) -> tensor<5x4xf64>
  %h2 = nn.reduce sum %hh dims = [0, 1] : tensor<5x4xf64> -> tensor<f64>
  %norms = nn.add %v2, %h2 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %decay = nn.constant dense<0.01> : tensor<f64>
  %penalty = nn.mul %norms, %decay : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %loss = nn.add %ce, %penalty : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %old = nn.constant dense<0.9> : tensor<f64>
  %new = nn.constant dense<0.1> : tensor<f64>
  %kept = nn.mul %ema, %old : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  %come = nn.mul %v, %new : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  %average = nn.add %kept, %come : (tensor<5x5xf64>, tensor<5x5xf64>) -> tensor<5x5xf64>
  return %loss, %logits, %norms, %t, %average, %h : tensor<f64>, tensor<6x4xf64>, tensor<f64>, tensor<f64>, tensor<5x5xf64>, tensor<5x4xf64>
}
