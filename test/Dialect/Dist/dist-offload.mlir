// RUN: shoal-opt %s --split-input-file --dist-offload --verify-diagnostics | FileCheck %s 
// RUN: shoal-opt %s --split-input-file --dist-offload --exec-insert-transfers --exec-outline-kernels --exec-lower --exec-verify --verify-diagnostics | FileCheck %s --check-prefix=EXEC

// State of the optimizer and masters lie on the host; the step, inputs and parameters that the step reads do not. In the rank program they are
// in an arena of their own, beside what the update reads and makes there.

// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<4xf32> {nn.input = "x"}
// CHECK-SAME: tensor<4xf32> {dist.memory = "host", nn.master, nn.param
// CHECK-SAME: tensor<4xf32> {dist.memory = "host", nn.state = #nn.state<"w.m"
// CHECK-SAME: tensor<4xf32> {dist.memory = "host", nn.state = #nn.state<"w.v"
// CHECK-SAME: tensor<4xf32> {nn.param = #nn.param<"b"
// CHECK-SAME: tensor<i64> {nn.step}
// EXEC: exec.program @step infer arena = {{[0-9]+}} host = 320
// EXEC-SAME: optimizer = 0
// EXEC: exec.arg param master "w" at 0 init = {{.*}} : <4xf32, host>
// EXEC: exec.arg param "b" at 0 init = {{.*}} : <4xf32>{{$}}
// EXEC: exec.arg state "w.m" of "w" at 64 {{.*}} : <4xf32, host>
// EXEC: exec.arg state "w.v" of "w" at 128 {{.*}} : <4xf32, host>
// EXEC: exec.launch @k_adam_update_{{.*}} inplace [0, 2, 3]
func.func @step(%x: tensor<4xf32> {nn.input = "x"}, %w: tensor<4xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>},
    %m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>}, %v: tensor<4xf32> {nn.state = #nn.state<"w.v", of = "w", init = 0.0>},
    %b: tensor<4xf32> {nn.param = #nn.param<"b", init = ones>}, %t: tensor<i64> {nn.step})
    -> (tensor<4xf32> {nn.output = "y"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w.m"}, tensor<4xf32> {nn.updates = "w.v"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %y = nn.add %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0:3 = nn.adam_update %w, %y, %m, %v lr = %lr step = %t {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %y, %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{'dist.memory' is "host" on state of the optimizer or a master, got: "host"}}
func.func @read(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.memory = "host"}) { return }

// -----

// expected-error @+1 {{'dist.memory' is "host" on state of the optimizer or a master, got: "disk"}}
func.func @disk(%m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>, dist.memory = "disk"}) { return }

// -----

// Where the optimizer keeps nothing there is nothing to place.
// expected-error @+1 {{has neither state of an optimizer nor masters that could lie on the host; needs an optimizer with state or bf16, or no offload}}
func.func @sgd(%g: tensor<4xf32> {nn.input = "g"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4xf32> {nn.updates = "w"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %0 = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %0 : tensor<4xf32>
}
