// An optimizer by hand may keep state of another shape than its parameter's, also where that has a shape of its own in
// files, in which state of as many elements lies, too: it is saved, verified, and goes on bit for bit.
// RUN: rm -rf %t && mkdir %t && shoalc %s -o %t/program
// RUN: shoal-run -n 2 %t/program --steps 4 --save %t/whole
// RUN: shoal-run -n 2 %t/program --steps 2 --save %t/saved
// RUN: shoal-ckpt verify %t/saved
// RUN: shoal-ckpt inspect %t/saved | FileCheck %s
// CHECK: param  w  f32 [2, 3]  1 box{{$}}
// CHECK: state  w.m  f32 [2, 3]  1 box  of w
// CHECK: state  w.rows  f32 [2]  1 box  of w
// RUN: grep '"w.m": .*"shape":\[2,3\].*"file_shape":\[6\]' %t/saved/step-000002/index.json
// RUN: grep '"w.rows": .*"shape":\[2\]' %t/saved/step-000002/index.json | not grep file_shape
// RUN: shoal-run -n 2 %t/program --steps 4 --resume %t/saved --save %t/saved
// RUN: shoal-ckpt merge %t/whole --with-state -o %t/whole.safetensors
// RUN: shoal-ckpt merge %t/saved --with-state -o %t/resumed.safetensors
// RUN: cmp %t/whole.safetensors %t/resumed.safetensors

dist.mesh @mesh <["data"=2]>
func.func @rows(%t: tensor<i64> {nn.step},
    %w: tensor<2x3xf32> {nn.param = #nn.param<"w", init = uniform(-1.0, 1.0), file = [6]>},
    %m: tensor<2x3xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>},
    %rows: tensor<2xf32> {nn.state = #nn.state<"w.rows", of = "w", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<i64> {nn.updates = "step"}, tensor<2x3xf32> {nn.updates = "w"}, tensor<2x3xf32> {nn.updates = "w.m"},
        tensor<2xf32> {nn.updates = "w.rows"}) {
  %one = nn.constant dense<1> : tensor<i64>
  %next = nn.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %square = nn.mul %w, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %sum = nn.reduce sum %square dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
  %loss = dist.all_reduce {"data"} sum %sum : tensor<f32>
  %row = nn.reduce sum %square dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  %sums = nn.add %rows, %row : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %0:2 = nn.momentum_update %w, %w, %m lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<2x3xf32>, tensor<f32>
  return %loss, %next, %0#0, %0#1, %sums : tensor<f32>, tensor<i64>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>
}
