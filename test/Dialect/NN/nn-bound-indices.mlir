// RUN: shoal-opt %s -split-input-file --nn-bound-indices | FileCheck %s

// Rows of a table, and classes or the number that stands for none; floats are distributions.
// CHECK-LABEL: func.func @model(
// CHECK-SAME: %{{[^:]*}}: tensor<6x3xi64> {nn.indices = #nn.indices<29>, nn.input = "ids"}
// CHECK-SAME: %{{[^:]*}}: tensor<6x3xi32> {nn.indices = #nn.indices<7, ignored = -100>, nn.input = "y"}
// CHECK-SAME: %{{[^:]*}}: tensor<6x3x7xf32> {nn.input = "p"}
func.func @model(%ids: tensor<6x3xi64> {nn.input = "ids"}, %y: tensor<6x3xi32> {nn.input = "y"},
    %p: tensor<6x3x7xf32> {nn.input = "p"}, %t: tensor<29x7xf32> {nn.param = #nn.param<"t", init = ones>})
    -> (tensor<f32> {nn.loss}, tensor<f32> {nn.metric = "m"}) {
  %0 = nn.embedding %t, %ids : (tensor<29x7xf32>, tensor<6x3xi64>) -> tensor<6x3x7xf32>
  %1, %lse1 = nn.cross_entropy mean %0, %y : (tensor<6x3x7xf32>, tensor<6x3xi32>) -> tensor<f32>
  %2, %lse2 = nn.cross_entropy mean %0, %p : (tensor<6x3x7xf32>, tensor<6x3x7xf32>) -> tensor<f32>
  return %1, %2 : tensor<f32>, tensor<f32>
}

// -----

// A micro-batch's part of the labels is indices, so all of them are.
// CHECK-LABEL: func.func @microbatches(
// CHECK-SAME: tensor<6xi64> {nn.indices = #nn.indices<4, ignored = -1>, nn.input = "y"}
func.func @microbatches(%x: tensor<6x4xf32> {nn.input = "x"}, %y: tensor<6xi64> {nn.input = "y"}) -> (tensor<f32> {nn.loss}) {
  %l = dist.accumulate(%x, %y) microbatches = 2 {
  ^bb0(%xm: tensor<3x4xf32>, %ym: tensor<3xi64>):
    %0, %lse = nn.cross_entropy sum %xm, %ym ignore_index = -1 : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<f32>
    dist.yield %0 : tensor<f32>
  } : (tensor<6x4xf32>, tensor<6xi64>) -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// What several ops take must mean something to each; the shard of a table says how many rows the whole has. A part of an input
// says nothing of the rest. What is there stays where no op says more, and is narrowed where one does.
// CHECK-LABEL: func.func @several(
// CHECK-SAME: tensor<3xi64> {nn.indices = #nn.indices<5>, nn.input = #nn.input<"both", unbatched>}
// CHECK-SAME: tensor<3xi64> {nn.indices = #nn.indices<20>, nn.input = #nn.input<"shard", unbatched>}
// CHECK-SAME: tensor<3xi64> {nn.input = #nn.input<"part", unbatched>}
// CHECK-SAME: tensor<3xi64> {nn.indices = #nn.indices<2>, nn.input = #nn.input<"kept", unbatched>}
// CHECK-SAME: tensor<3xi64> {nn.indices = #nn.indices<5>, nn.input = #nn.input<"narrowed", unbatched>}
func.func @several(%both: tensor<3xi64> {nn.input = #nn.input<"both", unbatched>}, %shard: tensor<3xi64> {nn.input = #nn.input<"shard", unbatched>},
    %part: tensor<3xi64> {nn.input = #nn.input<"part", unbatched>},
    %kept: tensor<3xi64> {nn.input = #nn.input<"kept", unbatched>, nn.indices = #nn.indices<2>},
    %narrowed: tensor<3xi64> {nn.input = #nn.input<"narrowed", unbatched>, nn.indices = #nn.indices<9, ignored = -1>},
    %t: tensor<7x2xf32>, %u: tensor<5x2xf32>, %o: tensor<i64>) {
  %0 = nn.embedding %t, %both : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %1 = nn.embedding %u, %both : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %2 = nn.embedding %t, %shard offset = %o vocab = 20 : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %3 = nn.slice %part dim = 0 start = 1 : tensor<3xi64> -> tensor<2xi64>
  %4 = nn.embedding %t, %3 : (tensor<7x2xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %5 = nn.embedding %u, %narrowed : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return
}
