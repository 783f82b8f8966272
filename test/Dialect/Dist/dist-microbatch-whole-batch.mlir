// RUN: shoal-opt %s --dist-microbatch=count=1 -split-input-file | FileCheck %s

// Stages of a pipeline stand in a region over micro-batches where the batch is one, too. Its rows are those of the batch,
// so that they can be returned; the argument stays as it is.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: func.func @rows(%arg0: tensor<4x6xf32>
// CHECK: %[[WHOLE:.*]] = nn.reshape %arg0 : tensor<4x6xf32> -> tensor<1x4x6xf32>
// CHECK: %[[O:.*]] = dist.accumulate(%[[WHOLE]], %{{.*}}) microbatches = 1
// CHECK: %[[Y:.*]] = nn.matmul
// CHECK: dist.yield %[[Y]] : tensor<4x6xf32>
// CHECK: return %[[O]]
func.func @rows(%x: tensor<4x6xf32> {nn.input = "x"}, %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>})
    -> (tensor<4x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// What rows make of all rows is whole while they run; what they do not read, as the buffer's new value, follows.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: func.func @statistics
// CHECK: %[[R:.*]]:2 = dist.accumulate
// CHECK: %[[SUM:.*]] = nn.reduce sum
// CHECK: %[[SCALE:.*]] = nn.rsqrt %[[SUM]]
// CHECK: nn.mul %{{.*}}, %[[SCALE]]
// CHECK: dist.yield
// CHECK: nn.maximum
// CHECK: return
func.func @statistics(%x: tensor<4x6xf32> {nn.input = "x"}, %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>},
    %b: tensor<6xf32> {nn.buffer = #nn.buffer<"b", init = 0.0>}) -> (tensor<f32> {nn.loss}, tensor<6xf32> {nn.updates = "b"}) {
  %0 = nn.matmul %x, %a : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %sum = nn.reduce sum %0 dims = [0] : tensor<4x6xf32> -> tensor<6xf32>
  %scale = nn.rsqrt %sum : tensor<6xf32>
  %1 = nn.mul %0, %scale : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
  %new = nn.maximum %b, %sum : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %loss, %new : tensor<f32>, tensor<6xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
// A batch of one row has rows, too.
// CHECK-LABEL: func.func @one_row
// CHECK: dist.accumulate
// CHECK: nn.matmul
// CHECK: nn.mul
// CHECK: nn.reduce sum
// CHECK: dist.yield
func.func @one_row(%x: tensor<1x6xf32> {nn.input = "x"}, %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %a : (tensor<1x6xf32>, tensor<6x6xf32>) -> tensor<1x6xf32>
  %1 = nn.mul %0, %0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<1x6xf32>
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<1x6xf32> -> tensor<f32>
  return %2 : tensor<f32>
}
