// RUN: shoal-opt %s --pipe-assign-stages="forward-only" -split-input-file -verify-diagnostics | FileCheck %s

// Ops that no output needs are gone, and with them what the file's other stages would compute.
dist.mesh @mesh <["pipe"=3]>
// CHECK-LABEL: @hidden
// CHECK: nn.matmul {{.*}}pipe.stage = 0
// CHECK: nn.relu {{.*}}pipe.stage = 2
func.func @hidden(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  // expected-remark@below {{stage 1 of the pipeline computes nothing}}
  %1 = nn.relu %0 {pipe.stage = 2 : i64} : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
// expected-error@below {{the file must name as many stages as the pipeline has, 2 (ranks along "pipe" times chunks), got: 3}}
func.func @many(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 {pipe.stage = 2 : i64} : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}
