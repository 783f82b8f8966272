// RUN: shoal-opt %s --pipe-assign-stages -split-input-file -verify-diagnostics | FileCheck %s

// A stage may compute nothing, which is told: the first, where the file begins with the second,
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: @first
// CHECK-COUNT-2: pipe.stage = 1
func.func @first(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // expected-remark@below {{stage 0 of the pipeline computes nothing: no op that a result needs computes with a parameter and an input there; move the boundaries (pipe.stage), or take fewer ranks or chunks}}
  %0 = nn.matmul %x, %a {pipe.stage = 1 : i64} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// or those of masks alone, which all stages compute that read them.
dist.mesh @mesh <["pipe"=4]>
// CHECK-LABEL: @masks
// CHECK: nn.matmul {{.*}}pipe.stage = 0
// CHECK: nn.relu %{{.*}} : tensor<8x6xf32>
// CHECK: nn.mul {{.*}}pipe.stage = 2
// expected-remark@below {{stage 3 of the pipeline computes nothing}}
func.func @masks(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}, tensor<8x6xf32> {nn.output = "p"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %mask = nn.relu %x {pipe.stage = 1 : i64} : tensor<8x6xf32>
  // expected-remark@below {{stage 1 of the pipeline computes nothing}}
  %1 = nn.mul %0, %mask {pipe.stage = 2 : i64} : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = nn.neg %x {pipe.stage = 3 : i64} : tensor<8x6xf32>
  return %1, %2 : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

// Evaluation has the stages of its training.
dist.mesh @mesh <["pipe"=2]>
func.func @evaluation(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<f32> {nn.loss}) attributes {nn.evaluation} {
  %0 = nn.matmul %x, %a {pipe.stage = 1 : i64} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<8x6xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
