// RUN: shoal-opt %s --nn-verify-model --split-input-file --verify-diagnostics -o /dev/null
// The way of a model begins with it.
// RUN: not shoal-opt %s --shoal-global --split-input-file 2>&1 | FileCheck %s --check-prefix=GLOBAL
// GLOBAL-COUNT-18: {{is made by|name must not be|already differentiated}}

// What a user may write.
dist.mesh @mesh <["data"=2]>
func.func @written(%x: tensor<4x3xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                   %y: tensor<4xi64> {nn.input = "y", nn.indices = #nn.indices<3>}, %step: tensor<i64> {nn.step},
                   %seed: tensor<i64> {nn.seed}, %valid: tensor<i64> {nn.valid_rows},
                   %w: tensor<3xf32> {nn.param = #nn.param<"w", init = ones>, dist.flat = #dist.flat<{"data"}>},
                   %m: tensor<3xf32> {nn.param = #nn.param<"m", init = ones>}, %v: tensor<3xf32> {nn.buffer = #nn.buffer<"x.v", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<4x3xf32> {nn.output = "lr"}, tensor<i64> {nn.updates = "step"}) {
  %0 = nn.mul %x, %w {nn.layer = "h.0", pipe.stage = 0 : i64} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  %1 = nn.tanh %0 {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : tensor<4x3xf32>
  %2 = nn.reduce sum %1 dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  return %2, %1, %step : tensor<f32>, tensor<4x3xf32>, tensor<i64>
}

// -----

// A bucket of which no pass knows what lies in it.
// expected-error @+1 {{argument 0 "w": 'dist.bucket' is made by dist-pack; remove it}}
func.func @bucket(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.bucket = #dist.bucket<[<#nn.param<"z", init = ones>, tensor<4xf32>>]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @class(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'exec.class' is made by nn-mixed-precision and dist-pack; remove it}}
  %0 = nn.tanh %w {exec.class = "param"} : tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

dist.mesh @mesh <["data"=2]>
func.func @pieces(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'dist.globals' is made by dist-partition; remove it}}
  %0 = nn.tanh %w {dist.globals = [#dist.global<0, tensor<4xf32>, <@mesh, [{}]>>]} : tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

dist.mesh @mesh <["data"=2]>
// expected-error @+1 {{argument 0 "w": 'dist.global' is made by dist-partition; remove it}}
func.func @piece(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{}]>>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @microbatch(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'dist.microbatch' is made by dist-expand-collectives; remove it}}
  %0 = nn.tanh %w {dist.microbatch = 1 : i64} : tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @sum(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'dist.running_sum' is made by dist-expand-collectives; remove it}}
  %0 = nn.add %w, %w {dist.running_sum} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @recompute(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'nn.recompute' is made by nn-recompute; remove it}}
  %0 = nn.tanh %w {nn.recompute} : tensor<4xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{argument 0 "w": 'nn.master' is made by nn-mixed-precision; remove it}}
func.func @master(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, nn.master}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{argument 1 "w.m": 'nn.state' is made by nn-optimize; remove it}}
func.func @state(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{result 1 "w": is a gradient, 'nn.grad', which nn-differentiate makes: the model is already differentiated; give it as it was written}}
func.func @gradient(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "w"}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0, %w : tensor<f32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{'nn.evaluation' is made by nn-select-results; remove it}}
func.func @evaluation(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) attributes {nn.evaluation} {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Names of the optimizer's, which this one (SGD) does not give.
// expected-error @+1 {{argument 1 "w.v": name must not be that of the optimizer's state of "w", its parameter's and '.v'}}
func.func @moment(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %m: tensor<4xf32> {nn.input = #nn.input<"w.v", unbatched>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{result 0 "grad_norm": 'nn.metric' name must not be grad_norm, which --grad-norm reports}}
func.func @norm(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss, nn.metric = "grad_norm"}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{result 0 "lr": 'nn.metric' name must not be lr, which --lr-schedule reports}}
func.func @rate(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss, nn.metric = "lr"}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// What a strategy wrote may be edited by hand.
func.func @why(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.why = {data = #dist.cause<"a hand">}}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @number(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'dist.id' is made by dist-number; remove it}}
  %0 = nn.reduce sum %w dims = [0] {dist.id = 3 : i64} : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// What has been compiled is told as such, before what else its passes have made.
// expected-error @+1 {{result 1 "w": is a gradient, 'nn.grad', which nn-differentiate makes: the model is already differentiated; give it as it was written}}
func.func @compiled(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, nn.master}) -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "w"}) {
  %0 = nn.reduce sum %w dims = [0] {dist.id = 3 : i64} : tensor<4xf32> -> tensor<f32>
  return %0, %w : tensor<f32>, tensor<4xf32>
}

// -----

// An op that only a pass makes.
func.func @pack(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'dist.pack' op is made by dist-pack; remove it}}
  %p = dist.pack %w[0:4] group 0 at 0 : (tensor<4xf32>) -> tensor<4xf32>
  %0 = nn.reduce sum %p dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @transfer(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // expected-error @+1 {{'exec.transfer' op is made by exec-insert-transfers; remove it}}
  %h = exec.transfer %w to host : tensor<4xf32>
  %0 = nn.reduce sum %h dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
