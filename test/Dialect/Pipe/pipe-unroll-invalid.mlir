// RUN: shoal-opt %s -split-input-file --pipe-unroll -verify-diagnostics

// Stages of two ranks meet by messages, which a schedule by hand must have, too.
dist.mesh @mesh <["pipe"=2]>
// expected-error @+1 {{must have the messages of its 2 ranks, got: none; pipe-schedule derives them}}
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0", "F0"]
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<4xf32> {nn.output = "y"}) {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
