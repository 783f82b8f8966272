// Evaluation finds each parameter on the rank that trains it, though what is left of a dropout (a product of scalars)
// looks like an op of evaluation that training has elsewhere.
// RUN: shoalc %s --optimizer adamw --microbatches 3 --verify-plan 2>&1 | FileCheck %s
// CHECK: equals one device, --mode train
// CHECK: equals one device, --mode eval

dist.mesh @mesh <["pipe"=4]>

func.func @evaluation(
    %x: tensor<5x4xf64> {nn.input = "x"},
    %y: tensor<5xi64> {nn.input = "y"},
    %ids: tensor<5xi64> {nn.input = "ids"},
    %p0: tensor<4x4xf64> {nn.param = #nn.param<"p0", init = normal(0.0, 0.5)>},
    %p1: tensor<4x4xf64> {nn.param = #nn.param<"p1", init = normal(0.0, 0.5)>},
    %p2: tensor<4x4xf64> {nn.param = #nn.param<"p2", init = normal(0.0, 0.5)>},
    %p3: tensor<4xf64> {nn.param = #nn.param<"p3", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<5x4xf64> {nn.output = "logits"}) {
  %v1 = nn.embedding %p0, %ids : (tensor<4x4xf64>, tensor<5xi64>) -> tensor<5x4xf64>
  %v2 = nn.tanh %v1 : tensor<5x4xf64>
  %v3 = nn.dropout %v2 rate = 0.25 id = 1 : tensor<5x4xf64>
  %v4 = nn.dropout %v3 rate = 0.25 id = 2 : tensor<5x4xf64>
  %v5 = nn.add %v4, %v2 : (tensor<5x4xf64>, tensor<5x4xf64>) -> tensor<5x4xf64>
  %v6 = nn.tanh %v5 : tensor<5x4xf64>
  %v7 = nn.matmul %v6, %p1 : (tensor<5x4xf64>, tensor<4x4xf64>) -> tensor<5x4xf64>
  %v8 = nn.matmul %v7, %p2 {pipe.stage = 1 : i64} : (tensor<5x4xf64>, tensor<4x4xf64>) -> tensor<5x4xf64>
  %v9 = nn.mse_loss mean %x, %x : (tensor<5x4xf64>, tensor<5x4xf64>) -> tensor<f64>
  %v10 = nn.add %v8, %p3 : (tensor<5x4xf64>, tensor<4xf64>) -> tensor<5x4xf64>
  %v11 = nn.dropout %v10 rate = 0.25 id = 3 {pipe.stage = 2 : i64} : tensor<5x4xf64>
  %v12 = nn.tanh %v11 {pipe.stage = 3 : i64} : tensor<5x4xf64>
  %v13 = nn.matmul %v12, %p0 {transpose_b} : (tensor<5x4xf64>, tensor<4x4xf64>) -> tensor<5x4xf64>
  %v14, %v14_l = nn.cross_entropy mean %v13, %y : (tensor<5x4xf64>, tensor<5xi64>) -> tensor<f64>
  %v15 = nn.add %v14, %v9 : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %v15, %v13 : tensor<f64>, tensor<5x4xf64>
}
