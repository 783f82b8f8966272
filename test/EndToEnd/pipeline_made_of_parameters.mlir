// What is made of parameters alone and read by several stages is computed by each of them. Its gradient ends in one, whose
// rank updates the parameter and hands it to those that read it. And a bias that one stage adds twice and another
// once: a term that a sum has several times.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 5 \
// RUN:   --shoalc "--optimizer adamw --lr 0.05 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=3]' '["pipe"=3] --microbatches 4 --pipeline-schedule zb-h1' \
// RUN:   '["pipe"=3, "data"=2] --microbatches 3 --zero 1' '["pipe"=3, "data"=2] --microbatches 2 --zero 3'
// RUN: sed 's/<MESH>/<["pipe"=3]>/' %s > %t.mlir
// RUN: shoalc %t.mlir --optimizer adamw --lr 0.05 --microbatches 2 --emit exec -o - | FileCheck %s
// RUN: shoalc %t.mlir --optimizer adamw --lr 0.05 --microbatches 2 --emit exec --explain -o %t.exec 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TOLD
// RUN: shoalc %t.mlir --optimizer adamw --lr 0.05 --microbatches 2 --verify-plan 2>&1 | FileCheck %s --check-prefix=EQUAL
// The gradient of a transposed parameter is compared as the sum that it is, not its terms.
// EQUAL: equals one device, --mode train
// Two other ranks read it; the moments stay where the update is.
// CHECK: exec.arg param "q" at {{[0-9]+}} init = {{[^{]*}} : <5xf64>
// CHECK: exec.arg state "q.m" {{.*}}{exec.at = array<i64: 0>}
// TOLD: for rank 2 of the pipeline reads 'q', which rank 0 updates
// TOLD-NEXT: because the pipeline: stages of different ranks share it

dist.mesh @mesh <MESH>

func.func @made_of_parameters(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %q: tensor<5xf64> {nn.param = #nn.param<"q", init = normal(0.0, 0.5)>},
    %b: tensor<5xf64> {nn.param = #nn.param<"b", init = normal(0.0, 0.5)>},
    %w0: tensor<5x5xf64> {nn.param = #nn.param<"w0", init = normal(0.0, 0.5)>},
    %w1: tensor<5x5xf64> {nn.param = #nn.param<"w1", init = normal(0.0, 0.5)>},
    %s: tensor<5x5xf64> {nn.param = #nn.param<"s", init = normal(0.0, 0.5)>},
    %w2: tensor<5x5xf64> {nn.param = #nn.param<"w2", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x5xf64> {nn.output = "logits"}) {
  %turned = nn.transpose %s [1, 0] : tensor<5x5xf64> -> tensor<5x5xf64>
  %gate = nn.tanh %q : tensor<5xf64>
  %0 = nn.matmul %x, %w0 {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %1 = nn.mul %0, %gate : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %2 = nn.add %1, %b : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %3 = nn.add %2, %b : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %4 = nn.matmul %3, %w1 {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %5 = nn.mul %4, %gate : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %mixed = nn.matmul %5, %turned : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %6 = nn.matmul %mixed, %w2 {pipe.stage = 2 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %7 = nn.mul %6, %gate : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %again = nn.matmul %7, %turned : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %8 = nn.add %again, %b : (tensor<6x5xf64>, tensor<5xf64>) -> tensor<6x5xf64>
  %loss, %lse = nn.cross_entropy mean %8, %y : (tensor<6x5xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %8 : tensor<f64>, tensor<6x5xf64>
}
