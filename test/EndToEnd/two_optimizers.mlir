// A program by hand that gives one parameter Adam and another one momentum, under equal suffixes: a checkpoint says what is
// whose, is found whole, and goes on bit for bit.
// RUN: rm -rf %t && mkdir %t && shoalc %s -o %t/program
// RUN: shoal-run -n 2 %t/program --steps 4 --dump-params %t/whole.safetensors
// RUN: shoal-run -n 2 %t/program --steps 2 --save %t/saved
// RUN: shoal-ckpt verify %t/saved | FileCheck %s --check-prefix=VERIFY
// VERIFY: 6 tensors each in one of
// RUN: shoal-ckpt inspect %t/saved | FileCheck %s
// CHECK: param  a  f32 [4]  1 box{{$}}
// CHECK: state  a.m  f32 [4]  1 box  of a
// CHECK: state  a.v  f32 [4]  1 box  of a
// CHECK: param  b  f32 [4]
// CHECK: state  b.m  f32 [4]  1 box  of b
// RUN: shoal-run -n 2 %t/program --steps 4 --resume %t/saved --dump-params %t/resumed.safetensors
// RUN: cmp %t/whole.safetensors %t/resumed.safetensors

// What it tells of its plan is that it has one of its own.
// RUN: %t/program --help | FileCheck %s --check-prefix=HELP
// HELP: A program compiled by shoalc: mesh data=2, a local program (L2), which is its own plan

// Whose it is, is a parameter of the program.
// RUN: sed 's/of = "b"/of = "c"/' %s > %t/broken.mlir
// RUN: not shoalc %t/broken.mlir -o %t/broken 2>&1 | FileCheck %s --check-prefix=BROKEN
// BROKEN: broken.mlir:[[#]]:{{.*}} holds state of "c", which is no parameter of the program

dist.mesh @mesh <["data"=2]>
func.func @two(%t: tensor<i64> {nn.step},
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = ones>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = uniform(-1.0, 1.0)>},
    %am: tensor<4xf32> {nn.state = #nn.state<"a.m", of = "a", init = 0.0>}, %av: tensor<4xf32> {nn.state = #nn.state<"a.v", of = "a", init = 0.0>},
    %bm: tensor<4xf32> {nn.state = #nn.state<"b.m", of = "b", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<i64> {nn.updates = "step"}, tensor<4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "a.m"},
        tensor<4xf32> {nn.updates = "a.v"}, tensor<4xf32> {nn.updates = "b"}, tensor<4xf32> {nn.updates = "b.m"}) {
  %one = nn.constant dense<1> : tensor<i64>
  %next = nn.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %product = nn.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sum = nn.reduce sum %product dims = [0] : tensor<4xf32> -> tensor<f32>
  %loss = dist.all_reduce {"data"} sum %sum : tensor<f32>
  %0:3 = nn.adam_update %a, %b, %am, %av lr = %lr step = %next {beta1 = 0.9 : f64, beta2 = 0.99 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %1:2 = nn.momentum_update %b, %a, %bm lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %loss, %next, %0#0, %0#1, %0#2, %1#0, %1#1 : tensor<f32>, tensor<i64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
