// RUN: shoal-opt %s --pipe-schedule="ranks=2 microbatches=2 estimate" | FileCheck %s
// RUN: shoal-opt %s --pipe-schedule="ranks=2 microbatches=2 schedule=zb-h1 estimate" | FileCheck %s --check-prefix=PARTS
// RUN: echo '{"pipelineCosts": {"unit": "s", "stages": [{"forward": 1, "backward": 2}]}}' > %t.json
// RUN: not shoal-opt %s --pipe-schedule="ranks=2 microbatches=2 estimate costs-file=%t.json" 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: echo 'module {}' | not shoal-opt --pipe-schedule="estimate" 2>&1 | FileCheck %s --check-prefix=NONE

// Costs are those of the step, which is cut for that and then left as it was.
// CHECK-NOT: pipe.call
// CHECK: dist.accumulate
// CHECK-NOT: pipe.call
// CHECK: pipe.schedule @schedule placement = loop microbatches = 2 chunks = 1 peak = [2, 1] ranks [
// CHECK-NEXT: "F0 SF0>1 F1 {{.*}}B0 {{.*}}B1",
// PARTS-NOT: pipe.call
// PARTS: "F0 SF0>1 {{.*}}I0 W0
// FILE: error: {{.*}}.json: pipelineCosts: must be of as many stages as the pipeline has, 2 (ranks along "pipe" times chunks), got: 1
// NONE: error: costs are those of a step with functions of stages (pipe-split), got: none
dist.mesh @mesh <["pipe"=2]>
func.func @step(%x: tensor<2x4x6xf32> {nn.batch_rows = 8 : i64, nn.input = "x"},
    %w: tensor<6x6xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<6x6xf32> {nn.grad = "w"}) {
  %two = nn.constant dense<2.0> : tensor<f32>
  %r:2 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%part: tensor<1x4x6xf32>):
    %rows = nn.reshape %part : tensor<1x4x6xf32> -> tensor<4x6xf32>
    %h = nn.matmul %rows, %w {pipe.stage = 0 : i64} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %o = nn.matmul %h, %w {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %d = nn.mul %o, %two {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    %square = nn.mul %o, %o {pipe.stage = 1 : i64} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %loss = nn.reduce sum %square dims = [0, 1] {pipe.stage = 1 : i64} : tensor<4x6xf32> -> tensor<f32>
    %dh = nn.matmul %d, %w {pipe.stage = 1 : i64, transpose_b} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %g1 = nn.matmul %h, %d {pipe.stage = 1 : i64, transpose_a} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    %g0 = nn.matmul %rows, %dh {pipe.stage = 0 : i64, transpose_a} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
    %g = nn.add %g0, %g1 : (tensor<6x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    dist.yield %g, %loss : tensor<6x6xf32>, tensor<f32>
  } : (tensor<2x4x6xf32>) -> (tensor<6x6xf32>, tensor<f32>)
  return %r#1, %r#0 : tensor<f32>, tensor<6x6xf32>
}
