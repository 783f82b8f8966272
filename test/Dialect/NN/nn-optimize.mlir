// RUN: shoal-opt %s --nn-optimize="optimizer=sgd lr=0.1 weight-decay=0.5" | FileCheck %s --check-prefix=SGD
// RUN: shoal-opt %s --nn-optimize="optimizer=sgd lr=0.1 momentum=0.9 weight-decay=0.5 decay=matrices" | FileCheck %s --check-prefix=MOMENTUM
// RUN: shoal-opt %s --nn-optimize="momentum=0.9 nesterov=1" | FileCheck %s --check-prefix=NESTEROV
// RUN: shoal-opt %s --nn-optimize="optimizer=adamw beta1=0.8 beta2=0.9 eps=1e-6 weight-decay=0.5" | FileCheck %s --check-prefix=ADAMW
// RUN: shoal-opt %s --nn-optimize="optimizer=adam" | FileCheck %s --check-prefix=ADAM
// RUN: shoal-opt %s --nn-optimize="clip-grad-norm=2 grad-norm=1" | FileCheck %s --check-prefix=CLIP
// RUN: shoal-opt %s --nn-optimize="clip-grad-norm=2" | FileCheck %s --check-prefix=SILENT
// RUN: shoal-opt %s --nn-optimize="optimizer=adamw clip-grad-norm=2" | FileCheck %s --check-prefix=NARROW
// RUN: shoal-opt %s --nn-optimize="optimizer=adamw" | FileCheck %s --check-prefix=UNCLIPPED
// RUN: shoal-opt %s --nn-optimize="lr=0.5 lr-schedule=linear warmup-steps=4 decay-steps=12 min-lr=0.25" | FileCheck %s --check-prefix=LINEAR
// RUN: shoal-opt %s --nn-optimize="lr=0.5 lr-schedule=constant" | FileCheck %s --check-prefix=CONSTANT

// Plain SGD has no state.
// SGD-LABEL: func.func @model
// SGD-SAME: (%[[W:[^:]*]]: tensor<4x2xf32>{{.*}}, %[[B:[^:]*]]: tensor<2xf32>
// SGD-SAME: -> (tensor<f32> {nn.loss}, tensor<4x2xf32> {nn.grad = "w"}, tensor<2xf32> {nn.grad = "b"},
// SGD-SAME: tensor<4x2xf32> {nn.updates = "w"}, tensor<2xf32> {nn.updates = "b"})
// SGD: %[[LR:.*]] = nn.constant dense<1.000000e-01> : tensor<f32>
// SGD: %[[W1:.*]] = nn.sgd_update %[[W]], %{{.*}} lr = %[[LR]] {nn.layer = "h", weight_decay = 5.000000e-01 : f64}
// SGD: %[[B1:.*]] = nn.sgd_update %[[B]], %{{.*}} {weight_decay = 5.000000e-01 : f64}
// SGD: return %{{.*}}, %[[W1]], %[[B1]]

// Velocities are state; only matrices decay when asked so.
// MOMENTUM-LABEL: func.func @model
// MOMENTUM-SAME: %[[VW:[^:]*]]: tensor<4x2xf32> {nn.state = #nn.state<"w.velocity", of = "w", init = 0.0>}
// MOMENTUM-SAME: %[[VB:[^:]*]]: tensor<2xf32> {nn.state = #nn.state<"b.velocity", of = "b", init = 0.0>})
// MOMENTUM-SAME: {nn.updates = "w"}, tensor<4x2xf32> {nn.updates = "w.velocity"}
// MOMENTUM: nn.momentum_update %{{.*}}, %{{.*}}, %[[VW]] lr = %{{.*}} {momentum = 9.000000e-01 : f64, nn.layer = "h", weight_decay = 5.000000e-01 : f64}
// MOMENTUM: nn.momentum_update %{{.*}}, %{{.*}}, %[[VB]] lr = %{{.*}} {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}

// Nesterov's form is an attribute of the update.
// NESTEROV: nn.momentum_update {{.*}} nesterov, nn.layer = "h", weight_decay = 0.000000e+00 : f64}

// AdamW counts steps: the first update sees step 1.
// ADAMW-LABEL: func.func @model
// ADAMW-SAME: %[[STEP:[^:]*]]: tensor<i64> {nn.step}
// ADAMW-SAME: %[[M:[^:]*]]: tensor<4x2xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>}
// ADAMW-SAME: %[[V:[^:]*]]: tensor<4x2xf32> {nn.state = #nn.state<"w.v", of = "w", init = 0.0>}
// ADAMW-SAME: tensor<i64> {nn.updates = "step"}
// ADAMW-SAME: tensor<4x2xf32> {nn.updates = "w"}, tensor<4x2xf32> {nn.updates = "w.m"}, tensor<4x2xf32> {nn.updates = "w.v"}
// ADAMW: %[[ONE:.*]] = nn.constant dense<1> : tensor<i64>
// ADAMW: %[[NEXT:.*]] = nn.add %[[STEP]], %[[ONE]]
// ADAMW: nn.adam_update %{{.*}}, %{{.*}}, %[[M]], %[[V]] lr = %{{.*}} step = %[[NEXT]] {beta1 = 8.000000e-01 : f64, beta2 = 9.000000e-01 : f64, decoupled, eps = 9.9{{.*}}E-7 : f64

// Adam's decay is not decoupled.
// ADAM-LABEL: func.func @model
// ADAM-NOT: decoupled

// A schedule counts steps, also for SGD, and computes the rate from their number as f64: how far the decay is, the
// rate between both ends, the share of the warm-up. The parameters' type comes last, once for all layers.
// LINEAR-LABEL: func.func @model
// LINEAR-SAME: %[[STEP:[^:]*]]: tensor<i64> {nn.step}
// LINEAR-SAME: tensor<i64> {nn.updates = "step"}, tensor<f64> {nn.metric = "lr"}
// LINEAR: %[[NEXT:.*]] = nn.add %[[STEP]]
// LINEAR: %[[T:.*]] = nn.cast %[[NEXT]] : tensor<i64> -> tensor<f64>
// LINEAR: %[[FIVE:.*]] = nn.constant dense<5.000000e+00>
// LINEAR: %[[PAST:.*]] = nn.sub %[[T]], %[[FIVE]]
// LINEAR: %[[UP:.*]] = nn.maximum %[[PAST]]
// LINEAR: %[[EIGHT:.*]] = nn.constant dense<8.000000e+00>
// LINEAR: %[[RATIO:.*]] = nn.div %[[UP]], %[[EIGHT]]
// LINEAR: %[[P:.*]] = nn.minimum %[[RATIO]]
// LINEAR: %[[REST:.*]] = nn.sub %{{.*}}, %[[P]]
// LINEAR: %[[HIGH:.*]] = nn.constant dense<5.000000e-01>
// LINEAR: nn.mul %[[REST]], %[[HIGH]]
// LINEAR: %[[LOW:.*]] = nn.constant dense<2.500000e-01>
// LINEAR: nn.mul %[[P]], %[[LOW]]
// LINEAR: %[[DECAYED:.*]] = nn.add
// LINEAR: %[[FOUR:.*]] = nn.constant dense<4.000000e+00>
// LINEAR: %[[SHARE:.*]] = nn.div %[[T]], %[[FOUR]]
// LINEAR: %[[WARM:.*]] = nn.minimum %[[SHARE]]
// LINEAR: %[[RATE:.*]] = nn.mul %[[WARM]], %[[DECAYED]]
// LINEAR: %[[LR:.*]] = nn.cast %[[RATE]] : tensor<f64> -> tensor<f32>
// LINEAR: nn.sgd_update %{{.*}}, %{{.*}} lr = %[[LR]] {nn.layer = "h"
// LINEAR: nn.sgd_update %{{.*}}, %{{.*}} lr = %[[LR]] {weight_decay

// A constant rate without warm-up needs no arithmetic, but is reported.
// CONSTANT-LABEL: func.func @model
// CONSTANT-SAME: tensor<f64> {nn.metric = "lr"}
// CONSTANT-NOT: nn.div
// CONSTANT: %[[RATE:.*]] = nn.constant dense<5.000000e-01> : tensor<f64>
// CONSTANT: nn.cast %[[RATE]] : tensor<f64> -> tensor<f32>

// The norm is over all gradients, reported before clipping; updates see clipped gradients, results do not.
// CLIP-LABEL: func.func @model
// CLIP-SAME: tensor<f32> {nn.metric = "grad_norm"}
// CLIP: %[[GW:.*]] = nn.neg
// CLIP: %[[GB:.*]] = nn.exp
// CLIP: %[[SW:.*]] = nn.mul %[[GW]], %[[GW]]
// CLIP: %[[RW:.*]] = nn.reduce sum %[[SW]] dims = [0, 1]
// CLIP: %[[SB:.*]] = nn.mul %[[GB]], %[[GB]]
// CLIP: %[[RB:.*]] = nn.reduce sum %[[SB]] dims = [0]
// CLIP: %[[SUM:.*]] = nn.add %[[RW]], %[[RB]]
// CLIP: %[[NORM:.*]] = nn.sqrt %[[SUM]]
// CLIP: %[[TINY:.*]] = nn.constant dense<9.99999997E-7>
// CLIP: %[[DEN:.*]] = nn.add %[[NORM]], %[[TINY]]
// CLIP: %[[LIMIT:.*]] = nn.constant dense<2.000000e+00>
// CLIP: %[[RATIO:.*]] = nn.div %[[LIMIT]], %[[DEN]]
// CLIP: %[[ONE:.*]] = nn.constant dense<1.000000e+00>
// CLIP: %[[FACTOR:.*]] = nn.minimum %[[RATIO]], %[[ONE]]
// CLIP: %[[CW:.*]] = nn.mul %[[GW]], %[[FACTOR]] {nn.layer = "h"}
// CLIP: %[[CB:.*]] = nn.mul %[[GB]], %[[FACTOR]]
// CLIP: nn.sgd_update %{{.*}}, %[[CW]]{{.*}}nn.layer = "h"
// CLIP: nn.sgd_update %{{.*}}, %[[CB]]
// CLIP: return %{{.*}}, %[[GW]], %[[GB]], %[[NORM]]

// Clipping alone reports nothing.
// SILENT: func.func @model
// SILENT-NOT: nn.metric
func.func @model(%w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>}, %b: tensor<2xf32> {nn.param = #nn.param<"b", init = zeros>}, %loss: tensor<f32>)
    -> (tensor<f32> {nn.loss}, tensor<4x2xf32> {nn.grad = "w"}, tensor<2xf32> {nn.grad = "b"}) {
  %0 = nn.neg %w {nn.layer = "h"} : tensor<4x2xf32>
  %1 = nn.exp %b : tensor<2xf32>
  return %loss, %0, %1 : tensor<f32>, tensor<4x2xf32>, tensor<2xf32>
}

// A step that the model reads advances, whatever the optimizer.
// SGD-LABEL: func.func @reads_step
// SGD-SAME: %[[STEP:[^:]*]]: tensor<i64> {nn.step}
// SGD-SAME: tensor<i64> {nn.updates = "step"}
// SGD: %[[NEXT:.*]] = nn.add %[[STEP]], %{{.*}}
// SGD: return %{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}}
func.func @reads_step(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}, %seed: tensor<i64> {nn.seed}, %step: tensor<i64> {nn.step},
    %loss: tensor<f32>) -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "w"}) {
  %0 = nn.dropout %w rate = 0.5 id = 0 seed = %seed step = %step : tensor<4xf32>
  return %loss, %0 : tensor<f32>, tensor<4xf32>
}

// Gradients of bf16 are squared, clipped and applied in f32; moments have the type of the master.
// NARROW-LABEL: func.func @master
// NARROW-SAME: %[[M:[^:]*]]: tensor<2xf32> {nn.state = #nn.state<"w.m"
// NARROW: %[[WIDE:.*]] = nn.cast %[[G:.*]] : tensor<2xbf16> -> tensor<2xf32>
// NARROW: %[[SQUARE:.*]] = nn.mul %[[WIDE]], %[[WIDE]]
// NARROW: nn.reduce sum %[[SQUARE]] dims = [0] : tensor<2xf32> -> tensor<f32>
// NARROW: %[[CLIPPED:.*]] = nn.mul %{{.*}} : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
// NARROW: nn.adam_update %{{.*}}, %[[CLIPPED]], %[[M]], {{.*}} : tensor<2xf32>, tensor<f32>
// UNCLIPPED-LABEL: func.func @master
// UNCLIPPED: %[[G:.*]] = nn.cast %{{.*}} : tensor<2xbf16> -> tensor<2xf32>
// UNCLIPPED: nn.adam_update %{{.*}}, %[[G]],
func.func @master(%w: tensor<2xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>}, %l: tensor<f32> {nn.input = #nn.input<"l", unbatched>},
    %g: tensor<2xbf16> {nn.input = #nn.input<"g", unbatched>}) -> (tensor<f32> {nn.loss}, tensor<2xbf16> {nn.grad = "w"}) {
  return %l, %g : tensor<f32>, tensor<2xbf16>
}
