// The gradient of a factor needs what another stage has sent: as it was sent, and not what that stage made it of, which it would compute again.
// RUN: shoalc %s --mesh pipe=2 --pipeline-schedule 1f1b --microbatches 4 --recompute full --dtype bf16 --optimizer sgd --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh pipe=2 --pipeline-schedule zb-v --microbatches 4 --recompute selective --dtype bf16 --optimizer sgd --verify-plan 2>&1 | FileCheck %s
// CHECK: the plan equals one device, --mode train
func.func @m(%x: tensor<4x6x2xf32> {nn.input = "x"},
    %p0: tensor<2x2xf32> {nn.param = #nn.param<"p0", init = normal(0.0, 0.5)>},
    %p: tensor<6x2xf32> {nn.param = #nn.param<"p", init = normal(0.0, 0.5)>},
    %p1: tensor<2x2xf32> {nn.param = #nn.param<"p1", init = normal(0.0, 0.5)>},
    %p2: tensor<2x2xf32> {nn.param = #nn.param<"p2", init = normal(0.0, 0.5)>})
    -> (tensor<f32> {nn.loss}) {
  %a = nn.matmul %x, %p0 {nn.layer = "h.0"} : (tensor<4x6x2xf32>, tensor<2x2xf32>) -> tensor<4x6x2xf32>
  %s = nn.add %x, %a {nn.layer = "h.0"} : (tensor<4x6x2xf32>, tensor<4x6x2xf32>) -> tensor<4x6x2xf32>
  %b = nn.mul %s, %p {nn.layer = "h.1"} : (tensor<4x6x2xf32>, tensor<6x2xf32>) -> tensor<4x6x2xf32>
  %b1 = nn.matmul %b, %p2 {nn.layer = "h.2"} : (tensor<4x6x2xf32>, tensor<2x2xf32>) -> tensor<4x6x2xf32>
  %t = nn.tanh %b1 {nn.layer = "h.2"} : tensor<4x6x2xf32>
  %c = nn.matmul %t, %p1 {nn.layer = "h.3"} : (tensor<4x6x2xf32>, tensor<2x2xf32>) -> tensor<4x6x2xf32>
  %l = nn.reduce sum %c dims = [0, 1, 2] : tensor<4x6x2xf32> -> tensor<f32>
  return %l : tensor<f32>
}
