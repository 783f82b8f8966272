// A parameter with a row for each token lies on the stage that reads it; the evaluation, which has the model's order, finds it there.
// RUN: shoalc %s --mesh context=2,pipe=2 --context-parallel zigzag --pipeline-schedule gpipe --microbatches 2 --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=1,pipe=2 --context-parallel zigzag --pipeline-schedule zb-h1 --microbatches 2 --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh data=2,context=2,pipe=2 --context-parallel zigzag --pipeline-schedule 1f1b --microbatches 2 --zero 1 --dtype bf16 --optimizer adamw --recompute full --verify-plan 2>&1 | FileCheck %s
// In bf16 its gradient is widened by the stage that makes it.
// RUN: shoalc %s --mesh pipe=2 --pipeline-schedule zb-v --microbatches 2 --dtype bf16 --verify-plan 2>&1 | FileCheck %s
// CHECK: the plan equals one device, --mode train
// CHECK: the plan equals one device, --mode eval
func.func @m(
    %x: tensor<4x6x3xf64> {nn.input = "x"},
    %w0: tensor<3x3xf64> {nn.param = #nn.param<"w0", init = normal(0.0, 0.5)>},
    %w1: tensor<3x3xf64> {nn.param = #nn.param<"w1", init = normal(0.0, 0.5)>},
    %p: tensor<6x1xf64> {nn.param = #nn.param<"p", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}) {
  %g = nn.matmul %x, %w0 {nn.layer = "h.0"} : (tensor<4x6x3xf64>, tensor<3x3xf64>) -> tensor<4x6x3xf64>
  %q = nn.reshape %g {nn.layer = "h.0"} : tensor<4x6x3xf64> -> tensor<4x6x1x1x3xf64>
  %k = nn.reshape %g {nn.layer = "h.0"} : tensor<4x6x3xf64> -> tensor<4x6x1x3xf64>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 {nn.layer = "h.0"} : (tensor<4x6x1x1x3xf64>, tensor<4x6x1x3xf64>, tensor<4x6x1x3xf64>) -> tensor<4x6x1x1x3xf64>
  %y = nn.reshape %o {nn.layer = "h.0"} : tensor<4x6x1x1x3xf64> -> tensor<4x6x3xf64>
  %z = nn.mul %y, %p {nn.layer = "h.1"} : (tensor<4x6x3xf64>, tensor<6x1xf64>) -> tensor<4x6x3xf64>
  %h = nn.matmul %z, %w1 {nn.layer = "h.1"} : (tensor<4x6x3xf64>, tensor<3x3xf64>) -> tensor<4x6x3xf64>
  %loss = nn.reduce sum %h dims = [0, 1, 2] : tensor<4x6x3xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
