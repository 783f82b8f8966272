// Activations that are computed again, in real processes, where stages begin inside layers: one layer lies in three
// stages, with a sum of what the first of them makes, a mask of the inputs and dropout in each, another in two. Equal to
// one device that keeps all, losses, gradients and parameters, and bytes as promised.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 3 --shoalc "--optimizer adam --lr 0.01" '["pipe"=1, "tensor"=1]' \
// RUN:   '["pipe"=4, "tensor"=1] --microbatches 4 --recompute full' \
// RUN:   '["pipe"=4, "tensor"=1] --microbatches 4 --recompute selective --pipeline-schedule zb-h1' \
// RUN:   '["pipe"=2, "tensor"=2] --microbatches 2 --recompute full --pipeline-schedule zb-v --tensor-parallel' \
// RUN:   '["tensor"=2, "pipe"=2] --microbatches 2 --recompute selective --pipeline-schedule interleaved --tensor-parallel'
// Step by step and value by value, evaluation too.
// RUN: sed 's/<MESH>/<["pipe"=4]>/' %s | shoalc - --optimizer sgd --lr 0.1 --microbatches 4 --recompute full --emit exec --verify-plan -o %t.exec 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EQUAL
// EQUAL: the plan equals one device, --mode train: {{[1-9][0-9]*}} values
// EQUAL: the plan equals one device, --mode eval: {{[1-9][0-9]*}} values

dist.mesh @mesh <MESH>

func.func @recomputed(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %w: tensor<5x8xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %v: tensor<8x8xf64> {nn.param = #nn.param<"v", init = normal(0.0, 0.5)>},
    %u: tensor<8x8xf64> {nn.param = #nn.param<"u", init = normal(0.0, 0.5)>},
    %t: tensor<8x8xf64> {nn.param = #nn.param<"t", init = normal(0.0, 0.5)>},
    %s: tensor<8x8xf64> {nn.param = #nn.param<"s", init = normal(0.0, 0.5)>},
    %h: tensor<8x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "logits"}) {
  %sums = nn.reduce sum %x dims = [1] {nn.layer = "h.0"} : tensor<6x5xf64> -> tensor<6xf64>
  %column = nn.reshape %sums {nn.layer = "h.0"} : tensor<6xf64> -> tensor<6x1xf64>
  %mask = nn.sigmoid %column {nn.layer = "h.0"} : tensor<6x1xf64>
  %0 = nn.matmul %x, %w {nn.layer = "h.0", pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x8xf64>) -> tensor<6x8xf64>
  %1 = nn.tanh %0 {nn.layer = "h.0"} : tensor<6x8xf64>
  %2 = nn.dropout %1 rate = 0.25 id = 0 {nn.layer = "h.0"} : tensor<6x8xf64>
  %skip = nn.mul %2, %mask {nn.layer = "h.0"} : (tensor<6x8xf64>, tensor<6x1xf64>) -> tensor<6x8xf64>
  %3 = nn.matmul %skip, %v {nn.layer = "h.0", pipe.stage = 1 : i64} : (tensor<6x8xf64>, tensor<8x8xf64>) -> tensor<6x8xf64>
  %4 = nn.gelu tanh %3 {nn.layer = "h.0"} : tensor<6x8xf64>
  %5 = nn.dropout %4 rate = 0.25 id = 1 {nn.layer = "h.0"} : tensor<6x8xf64>
  %6 = nn.mul %5, %mask {nn.layer = "h.0"} : (tensor<6x8xf64>, tensor<6x1xf64>) -> tensor<6x8xf64>
  %7 = nn.matmul %6, %u {nn.layer = "h.0"} : (tensor<6x8xf64>, tensor<8x8xf64>) -> tensor<6x8xf64>
  %8 = nn.exp %7 {nn.layer = "h.0", pipe.stage = 2 : i64} : tensor<6x8xf64>
  %9 = nn.dropout %8 rate = 0.25 id = 2 {nn.layer = "h.0"} : tensor<6x8xf64>
  %10 = nn.add %9, %skip {nn.layer = "h.0"} : (tensor<6x8xf64>, tensor<6x8xf64>) -> tensor<6x8xf64>
  %11 = nn.tanh %10 {nn.layer = "h.0"} : tensor<6x8xf64>
  %12 = nn.matmul %11, %t {nn.layer = "h.1"} : (tensor<6x8xf64>, tensor<8x8xf64>) -> tensor<6x8xf64>
  %13 = nn.tanh %12 {nn.layer = "h.1"} : tensor<6x8xf64>
  %14 = nn.tanh %13 {nn.layer = "h.1", pipe.stage = 3 : i64} : tensor<6x8xf64>
  %15 = nn.matmul %14, %s {nn.layer = "h.1"} : (tensor<6x8xf64>, tensor<8x8xf64>) -> tensor<6x8xf64>
  %16 = nn.tanh %15 {nn.layer = "h.1"} : tensor<6x8xf64>
  %17 = nn.matmul %16, %h : (tensor<6x8xf64>, tensor<8x4xf64>) -> tensor<6x4xf64>
  %loss, %lse = nn.cross_entropy mean %17, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %17 : tensor<f64>, tensor<6x4xf64>
}
