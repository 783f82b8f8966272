// RUN: shoal-opt %s --pipe-assign-stages -split-input-file -verify-diagnostics

dist.mesh @mesh <["pipe"=3]>
// expected-error@below {{a pipeline needs a layer or an op outside of layers for each of its 3 stages (ranks along "pipe" times chunks), got: 2; take fewer ranks or chunks}}
func.func @few(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

dist.mesh @mesh <["pipe"=3]>
// expected-error@below {{the file must name as many stages as the pipeline has, 3 (ranks along "pipe" times chunks), got: 2}}
func.func @boundaries(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 {pipe.stage = 1 : i64} : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
func.func @backwards(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // expected-note@below {{stage 1 begins here}}
  %0 = nn.matmul %x, %a {pipe.stage = 1 : i64} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  // expected-error@below {{stages must follow each other in the order of the program: behind stage 1 comes stage 1 or 2, got: 0}}
  %1 = nn.relu %0 {pipe.stage = 0 : i64} : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
// expected-error@below {{a pipeline of 2 stages needs ops that compute with a parameter and an input, got: none}}
func.func @nothing(%x: tensor<8x6xf32> {nn.input = "x"}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.relu %x : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}

// -----

// No stage is left out, be it that no result needs its ops.
dist.mesh @mesh <["pipe"=3]>
// expected-note@below {{an op whose results nothing needs is gone by here, and its boundary with it}}
func.func @gap(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  // expected-error@below {{stages must follow each other in the order of the program: behind stage 0 comes stage 0 or 1, got: 2}}
  %1 = nn.relu %0 {pipe.stage = 2 : i64} : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// A mean over the batch and the rows that read it are one: evaluation has a buffer in its place.
dist.mesh @mesh <["pipe"=4]>
// expected-error@below {{for each of its 4 stages (ranks along "pipe" times chunks), got: 3; take fewer ranks or chunks}}
func.func @mean(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %sum = nn.reduce sum %0 dims = [0] : tensor<8x6xf32> -> tensor<6xf32>
  %double = nn.add %sum, %sum : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %1 = nn.sub %0, %double : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
  %2 = nn.matmul %1, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  return %2 : tensor<8x6xf32>
}
