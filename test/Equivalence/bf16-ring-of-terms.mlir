// Gradients of a ring that are terms of a sum over another axis, a sharded vocabulary's, are rounded to bf16 as such.
// RUN: shoalc %s --mesh context=3,tensor=2 --tensor-parallel --context-parallel ring --dtype bf16 --optimizer sgd --verify-plan 2>&1 | FileCheck %s
// RUN: shoalc %s --mesh context=3,tensor=2 --tensor-parallel --context-parallel zigzag --dtype bf16 --optimizer sgd --verify-plan 2>&1 | FileCheck %s
// CHECK: the plan equals one device, --mode train
// CHECK: the plan equals one device, --mode eval
func.func @m(%x: tensor<2x6x2xf32> {nn.input = "x"}, %y: tensor<2x6xi64> {nn.input = "y"},
 %wq: tensor<2x1x1x2xf32> {nn.param = #nn.param<"wq", init = normal(0.0, 0.5)>},
 %wk: tensor<2x1x2xf32> {nn.param = #nn.param<"wk", init = normal(0.0, 0.5)>},
 %wo: tensor<1x1x2x2xf32> {nn.param = #nn.param<"wo", init = normal(0.0, 0.5)>},
 %wl: tensor<2x5xf32> {nn.param = #nn.param<"wl", init = normal(0.0, 0.5)>}) -> (tensor<f32> {nn.loss}) {
  %q = nn.tensordot %x, %wq axes = 1 : (tensor<2x6x2xf32>, tensor<2x1x1x2xf32>) -> tensor<2x6x1x1x2xf32>
  %k = nn.tensordot %x, %wk axes = 1 : (tensor<2x6x2xf32>, tensor<2x1x2xf32>) -> tensor<2x6x1x2xf32>
  %o, %s = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<2x6x1x1x2xf32>, tensor<2x6x1x2xf32>, tensor<2x6x1x2xf32>) -> tensor<2x6x1x1x2xf32>
  %a = nn.tensordot %o, %wo axes = 3 : (tensor<2x6x1x1x2xf32>, tensor<1x1x2x2xf32>) -> tensor<2x6x2xf32>
  %l = nn.matmul %a, %wl : (tensor<2x6x2xf32>, tensor<2x5xf32>) -> tensor<2x6x5xf32>
  %loss, %ll = nn.cross_entropy mean %l, %y : (tensor<2x6x5xf32>, tensor<2x6xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
