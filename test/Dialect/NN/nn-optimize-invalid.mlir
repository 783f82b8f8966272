// RUN: shoal-opt %s --nn-optimize -split-input-file -verify-diagnostics -o /dev/null
// RUN: not shoal-opt %s --nn-optimize=optimizer=lion -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=LION
// RUN: not shoal-opt %s --nn-optimize=momentum=1 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=MOMENTUM
// RUN: not shoal-opt %s --nn-optimize="optimizer=adam momentum=0.9" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=IGNORED
// RUN: not shoal-opt %s --nn-optimize=nesterov=1 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not shoal-opt %s --nn-optimize=lr=nan -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=LR
// RUN: not shoal-opt %s --nn-optimize=decay=none -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: not shoal-opt %s --nn-optimize=lr-schedule=step -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not shoal-opt %s --nn-optimize=warmup-steps=3 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not shoal-opt %s --nn-optimize="lr-schedule=constant decay-steps=3" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=CONSTANT
// RUN: not shoal-opt %s --nn-optimize="lr-schedule=linear warmup-steps=3 decay-steps=3" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not shoal-opt %s --nn-optimize="lr-schedule=linear decay-steps=3 lr=0.5 min-lr=1" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: not shoal-opt %s --nn-optimize=beta2=0.9 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: not shoal-opt %s --nn-optimize=decay=matrices -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALLOWED
// RUN: not shoal-opt %s --nn-optimize=lr=1e39 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=LR32
// RUN: not shoal-opt %s --nn-optimize="lr-schedule=linear decay-steps=3 min-lr=1e-50" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=LEAST32
// RUN: not shoal-opt %s --nn-optimize=weight-decay=4e38 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=DECAY32
// RUN: not shoal-opt %s --nn-optimize=clip-grad-norm=1e300 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=CLIP32
// RUN: not shoal-opt %s --nn-optimize=momentum=1e-50 -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=MOMENTUM32
// RUN: not shoal-opt %s --nn-optimize="optimizer=adam beta2=1e-50" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=BETA32
// RUN: not shoal-opt %s --nn-optimize="optimizer=adam eps=1e39" -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=EPS32

// LION: error: optimizer must be sgd, adam or adamw, got: lion
// MOMENTUM: error: momentum must be in [0, 1), got: 1{{$}}
// IGNORED: error: momentum belongs to optimizer sgd, got: adam
// NESTEROV: error: nesterov needs momentum above 0
// LR: error: lr must be a finite number of at least 0, got: nan
// DECAY: error: decay must be all or matrices, got: none
// SCHEDULE: error: lr-schedule must be none, constant{{.*}}, got: step
// ALONE: error: warmup-steps needs lr-schedule
// CONSTANT: error: decay-steps belongs to lr-schedule linear{{.*}}, got: constant
// STEPS: error: decay-steps counts the warm-up and must be above warmup-steps, 3, got: 3
// LEAST: error: min-lr must be at most lr, 0.5, got: 1
// BETA: error: beta2 belongs to optimizer adam or adamw, got: sgd
// ALLOWED: error: decay needs weight-decay above 0

// The constants that options become are of the parameters' type.
// LR32: error: lr must be finite in f32, got: 1e+39
// LEAST32: error: min-lr must not round to 0 in f32, got: 1e-50
// DECAY32: error: weight-decay must be finite in f32, got: 4e+38
// CLIP32: error: clip-grad-norm must be finite in f32, got: 1e+300
// MOMENTUM32: error: momentum must not round to 0 in f32, got: 1e-50
// BETA32: error: beta2 must not round to 0 in f32, got: 1e-50
// EPS32: error: eps must be finite in f32, got: 1e+39

// expected-error @+1 {{the optimizer needs results with 'nn.grad', got none; run nn-differentiate first}}
func.func @none(%w: tensor<f32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  return %w : tensor<f32>
}

// -----

// expected-error @+1 {{result 0 "v": is the gradient of an unknown parameter: "v"}}
func.func @unknown(%w: tensor<f32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.grad = "v"}) {
  return %w : tensor<f32>
}

// -----

// expected-error @+1 {{argument 0 "w": already has an update, result 1}}
func.func @updated(%w: tensor<f32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.grad = "w"}, tensor<f32> {nn.updates = "w"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{result 0 "w": gradient of "w" must have the shape of 'tensor<f32>' and be of floats, got: 'tensor<2xf32>'}}
func.func @type(%w: tensor<f32> {nn.param = #nn.param<"w", init = zeros>}, %g: tensor<2xf32>) -> (tensor<2xf32> {nn.grad = "w"}) {
  return %g : tensor<2xf32>
}

// -----

func.func @range(%w: tensor<f32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.grad = "w"}) {
  return %w : tensor<f32>
}
