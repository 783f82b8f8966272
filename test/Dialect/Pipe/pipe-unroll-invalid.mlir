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

// -----

// Nothing of the step is left out.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @short placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0"]
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{must run once for each micro-batch, and the schedule does not run it for 0 (pipe-verify says more)}}
    %1 = pipe.call forward stage 1 @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Nor is its term added twice.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @twice placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1 F0", "RF0<0 F0"]
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    // expected-error @+1 {{must run once for each micro-batch, and the schedule runs it twice for 0 (pipe-verify says more)}}
    %0 = pipe.call forward stage 0 @f(%part) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y:2 = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{must run once for each micro-batch, and the schedule does not run it for 0}}
    %2 = pipe.call backward stage 1 @f(%1) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %1, %2 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %y#0, %y#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func private @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    // expected-error @+1 {{'pipe.ranks' must be of the 2 ranks of the pipeline, got: 2}}
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, pipe.ranks = array<i64: 0, 2>}) -> (tensor<4xf32> {nn.output = "y"}) {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f(%0, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func private @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    // expected-error @+1 {{'pipe.ranks' must have rank 1 of the pipeline, a stage of which reads w}}
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, pipe.ranks = array<i64: 0>}) -> (tensor<4xf32> {nn.output = "y"}) {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f(%0, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A sum over micro-batches is a rank's own: what two ranks make meets behind the region, by an exchange.
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @schedule placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = nn.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<4xf32> {nn.output = "y"}) {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %0 = pipe.call forward stage 0 @f(%part) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = pipe.call forward stage 1 @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @+1 {{a sum over micro-batches must be of what one rank of the pipeline makes, got terms of ranks 0 and 1; yield a sum for each and add them behind the region}}
    %2 = nn.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dist.yield %2 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
