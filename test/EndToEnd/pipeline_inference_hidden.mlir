// Of a file whose only output is of its first stage inference needs nothing of the second, which then computes nothing.
// RUN: shoalc %s --mode infer --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mode infer --mesh data=2,pipe=2 --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --optimizer sgd --verify-plan 2>&1 | FileCheck %s --check-prefix=TRAIN
// CHECK: the plan equals one device, --mode infer: {{[1-9][0-9]*}} values
// TRAIN: the plan equals one device, --mode train: {{[1-9][0-9]*}} values
// TRAIN: the plan equals one device, --mode eval: {{[1-9][0-9]*}} values

dist.mesh @mesh <["pipe"=2]>

func.func @hidden(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6x4xf64> {nn.input = "y"},
    %w: tensor<5x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %h: tensor<5x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x5xf64> {nn.output = "hidden"}) {
  %0 = nn.matmul %x, %w {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %1 = nn.tanh %0 : tensor<6x5xf64>
  %2 = nn.matmul %1, %h {pipe.stage = 1 : i64} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %loss = nn.mse_loss mean %2, %y : (tensor<6x4xf64>, tensor<6x4xf64>) -> tensor<f64>
  return %loss, %1 : tensor<f64>, tensor<6x5xf64>
}
