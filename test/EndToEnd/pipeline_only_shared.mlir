// A rank all of whose parameters are shared clips by the norm of the whole model: the norm of what all ranks have and
// that of what one has become a sum for all, and each rank updates its table by itself.
// RUN: %python %support/plans.py %s --rows 23 --work %t --steps 5 \
// RUN:   --shoalc "--optimizer adamw --lr 0.05 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["pipe"=1]' '["pipe"=2]' '["pipe"=2] --microbatches 4 --pipeline-schedule zb-h1' \
// RUN:   '["pipe"=2, "data"=2] --microbatches 3 --zero 3'
// RUN: sed 's/<MESH>/<["pipe"=2]>/' %s > %t.mlir
// RUN: shoalc %t.mlir --optimizer adamw --lr 0.05 --clip-grad-norm 0.3 --microbatches 2 --emit exec -o - | FileCheck %s
// What crosses the pipeline for the update: the table's gradient, and the norm as one number.
// CHECK-LABEL: exec.program @only_shared
// CHECK: exec.all_reduce {"pipe"} sum {{.*}} : <2x4xf64>
// CHECK: exec.all_reduce {"pipe"} sum {{.*}} : <f64>
// CHECK-NOT: exec.{{send|all_reduce}}
// CHECK-LABEL: exec.program @only_shared_eval

dist.mesh @mesh <MESH>

func.func @only_shared(
    %ids: tensor<6x3xi64> {nn.input = "ids"},
    %y: tensor<6x3xi64> {nn.input = "y"},
    %table: tensor<2x4xf64> {nn.param = #nn.param<"table", init = normal(0.0, 0.5)>},
    %scale: tensor<4xf64> {nn.param = #nn.param<"scale", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x3x2xf64> {nn.output = "logits"}) {
  %0 = nn.embedding %table, %ids {pipe.stage = 0 : i64} : (tensor<2x4xf64>, tensor<6x3xi64>) -> tensor<6x3x4xf64>
  %1 = nn.mul %0, %scale {pipe.stage = 1 : i64} : (tensor<6x3x4xf64>, tensor<4xf64>) -> tensor<6x3x4xf64>
  %2 = nn.matmul %1, %table {transpose_b} : (tensor<6x3x4xf64>, tensor<2x4xf64>) -> tensor<6x3x2xf64>
  %loss, %lse = nn.cross_entropy mean %2, %y : (tensor<6x3x2xf64>, tensor<6x3xi64>) -> tensor<f64>
  return %loss, %2 : tensor<f64>, tensor<6x3x2xf64>
}
