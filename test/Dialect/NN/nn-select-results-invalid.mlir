// RUN: shoal-opt %s --allow-unregistered-dialect --nn-select-results=mode=train -split-input-file -verify-diagnostics -o /dev/null
// RUN: not shoal-opt %s --allow-unregistered-dialect --nn-select-results=mode=eval -split-input-file -o /dev/null 2>&1 | FileCheck %s

// CHECK: error: 'func.func' op evaluation needs a result with 'nn.loss', got none

// expected-error @+1 {{training needs a result with 'nn.loss', got none}}
func.func @model(%x: tensor<8xf32> {nn.input = "x"}) -> (tensor<8xf32> {nn.output = "z"}) {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{a model must be one block that ends in a return, got: 2 blocks}}
func.func @model(%x: tensor<f32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<f32> {nn.loss}) {
  "test.br"()[^end] : () -> ()
^end:
  return %x : tensor<f32>
}
