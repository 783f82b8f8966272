// RUN: shoal-opt %s --split-input-file --verify-diagnostics

func.func @negative_stage(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'pipe.stage' must be an i64 of at least 0, got: -1 : i64}}
  %0 = nn.relu %x {pipe.stage = -1} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @wrong_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'pipe.stage' must be an i64 of at least 0, got: "first"}}
  %0 = nn.relu %x {pipe.stage = "first"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @misspelt(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{unknown attribute "pipe.stages", the pipe dialect knows on ops: pipe.stage}}
  %0 = nn.relu %x {pipe.stages = 1} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{'pipe.stage' belongs on the ops of a model, not on its function, got: 1 : i64}}
func.func @on_function() attributes {pipe.stage = 1} {
  return
}

// -----

func.func @on_argument(%x: tensor<4xf32> {nn.input = "x"},
    // expected-error @+1 {{argument 1 "y": unknown attribute "pipe.stage", the pipe dialect knows on arguments: pipe.ranks; an op has a stage}}
    %y: tensor<4xf32> {nn.input = "y", pipe.stage = 1}) {
  return
}

// -----

// expected-error @+1 {{unknown attribute "pipe.ranks": the pipe dialect knows none on results; an op has a stage}}
func.func @on_result(%x: tensor<4xf32>) -> (tensor<4xf32> {pipe.ranks = array<i64: 0>}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'pipe.ranks' must be ranks along "pipe" in ascending order, got: array<i64: 1, 1>}}
func.func @twice(%x: tensor<4xf32> {pipe.ranks = array<i64: 1, 1>}) {
  return
}

// -----

// expected-error @+1 {{placement must be loop or vee, got: ring}}
pipe.schedule @placement placement = ring microbatches = 1 chunks = 1 ranks ["F0 B0"]

// -----

// expected-error @+1 {{a schedule needs at least 1 of ranks, got: 0}}
pipe.schedule @no_rank placement = loop microbatches = 1 chunks = 1 ranks []

// -----

// expected-error @+1 {{a schedule needs at least 1 of micro-batches, got: -2}}
pipe.schedule @count placement = loop microbatches = -2 chunks = 1 ranks ["F0 B0"]

// -----

// expected-error @+1 {{ranks times chunks times micro-batches must be at most 4194304, got: 1 x 9223372036854775807 x 2}}
pipe.schedule @huge placement = loop microbatches = 2 chunks = 9223372036854775807 ranks ["F0 B0"]

// -----

// expected-error @+1 {{the peak needs one number per rank (1), got: 2}}
pipe.schedule @peak placement = loop microbatches = 1 chunks = 1 peak = [1, 1] ranks ["F0 B0"]

// -----

// expected-error @+1 {{a peak must be at least 0, got: -1}}
pipe.schedule @peak placement = loop microbatches = 1 chunks = 1 peak = [-1] ranks ["F0 B0"]

// -----

// expected-error @+1 {{rank 1: unknown action 'X0', expected F, B, I or W}}
pipe.schedule @letter placement = loop microbatches = 1 chunks = 1 ranks ["F0 B0", "F0 X0"]

// -----

// expected-error @+1 {{rank 0: a micro-batch must be below 1, got: 1}}
pipe.schedule @microbatch placement = loop microbatches = 1 chunks = 1 ranks ["F0 F1 B0"]

// -----

// expected-error @+1 {{rank 0: a chunk must be below 1, got: 1}}
pipe.schedule @chunk placement = loop microbatches = 1 chunks = 1 ranks ["F0 f0 B0"]

// -----

// expected-error @+1 {{rank 0: there is no stage behind the last one to exchange a message with, got: SF0 of stage 0}}
pipe.schedule @nowhere placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0 B0"]

// -----

// expected-error @+1 {{'pipe.schedule' op unknown attribute 'microbatch'}}
pipe.schedule @unknown placement = loop microbatches = 1 chunks = 1 ranks ["F0 B0"] attributes {microbatch = 2}

// -----

// The two sides of a message are of one shape.
func.func private @first(%x: tensor<1x4xf32>) -> tensor<4x6xf32> {
  %0 = nn.constant dense<0.0> : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func private @second(%x: tensor<4x5xf32>) -> tensor<f32> {
  %0 = nn.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}
func.func @message(%x: tensor<2x4xf32>) -> tensor<f32> {
  %r = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%part: tensor<1x4xf32>):
    // expected-note @+1 {{stage 0 sends 'tensor<4x6xf32>' where stage 1 receives 'tensor<4x5xf32>'}}
    %0 = pipe.call forward stage 0 @first(%part) : (tensor<1x4xf32>) -> tensor<4x6xf32>
    // expected-error @+1 {{'pipe.call' op must have the types of @second, '(tensor<4x5xf32>) -> tensor<f32>', got: '(tensor<4x6xf32>) -> tensor<f32>'}}
    %1 = pipe.call forward stage 1 @second(%0) : (tensor<4x6xf32>) -> tensor<f32>
    dist.yield %1 : tensor<f32>
  } : (tensor<2x4xf32>) -> tensor<f32>
  return %r : tensor<f32>
}

// -----

// A stage is what its function has inside.
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls a function with a body, got the declaration of @declared}}
  %0 = pipe.call forward stage 0 @declared(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Stages call no stages, so that their copies end.
func.func @itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    // expected-note @+2 {{it calls @itself}}
    // expected-error @+1 {{calls what one stage computes, in which is no pipe.call, got: @itself}}
    %0 = pipe.call forward stage 0 @itself(%part) : (tensor<4xf32>) -> tensor<4xf32>
    dist.yield %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls what one stage computes, in which is no pipe.call, got: @other}}
  %0 = pipe.call forward stage 0 @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it calls @leaf}}
  %0 = pipe.call forward stage 0 @leaf(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @leaf(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
