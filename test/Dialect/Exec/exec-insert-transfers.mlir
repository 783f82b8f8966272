// RUN: shoal-opt %s --split-input-file --exec-insert-transfers | FileCheck %s
// RUN: shoal-opt %s --split-input-file --exec-insert-transfers --exec-insert-transfers | FileCheck %s
// RUN: shoal-opt %s --split-input-file --exec-insert-transfers --exec-outline-kernels --exec-lower --exec-verify | FileCheck %s --check-prefix=EXEC

// An update runs where its state lies: gradient, parameter and step come, each once though two updates read the step; of what it makes the state
// stays and the parameter goes. A constant is everywhere.
// CHECK-LABEL: func.func @update
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {nn.input = "x"}, %[[W:[^:]*]]: tensor<4xf32> {nn.param
// CHECK-SAME: %[[M:[^:]*]]: tensor<4xf32> {dist.memory = "host"
// CHECK: %[[LR:.*]] = nn.constant
// CHECK: %[[G:.*]] = nn.relu %[[X]]
// CHECK-NEXT: %[[GH:.*]] = exec.transfer %[[G]] to host
// CHECK-NEXT: %[[T:.*]] = nn.add
// CHECK-NEXT: %[[TH:.*]] = exec.transfer %[[T]] to host : tensor<i64>
// CHECK-NEXT: %[[WH:.*]] = exec.transfer %[[W]] to host
// CHECK-NEXT: %[[NEW:.*]], %[[NEWM:.*]], %{{.*}} = nn.adam_update %[[WH]], %[[GH]], %[[M]], %{{.*}} lr = %[[LR]] step = %[[TH]]
// CHECK-NEXT: %[[NEWD:.*]] = exec.transfer %[[NEW]] to device
// CHECK-NEXT: %[[BH:.*]] = exec.transfer %{{.*}} to host
// CHECK-NEXT: nn.adam_update %[[BH]], %[[GH]], %{{.*}} step = %[[TH]]
// CHECK-NEXT: exec.transfer %{{.*}} to device
// CHECK-NEXT: return %{{.*}}, %[[NEWD]], %[[NEWM]],

// The kernels of the host are its own; what comes back is received where the parameter lies.
// EXEC: func.func private @k_adam_update_{{.*}} attributes {exec.host
// EXEC: exec.program @update {{.*}} arena = {{[0-9]+}} host = [[HOST:[0-9]+]]
// EXEC: %[[W:.*]] = exec.arg param "w" at {{.*}} : <4xf32>{{$}}
// EXEC: %[[M:.*]] = exec.arg state "w.m" of "w" at 0 init = {{.*}} : <4xf32, host>
// EXEC: %[[V:.*]] = exec.arg state "w.v" of "w" at 64 init = {{.*}} : <4xf32, host>
// EXEC: exec.copy {{.*}} {name = "to_host"} : <4xf32>, <4xf32, host>
// EXEC: %[[WH:.*]] = exec.buffer activation at {{.*}} : <4xf32, host>
// EXEC: exec.copy %[[W]] to %[[WH]] {name = "to_host"}
// EXEC: exec.launch @k_adam_update_{{.*}} ins(%[[WH]], %{{.*}}, %[[M]], %[[V]], {{.*}} inplace [-1, 2, 3] outs(%[[NEW:.*]] : !exec.buffer<4xf32, host>)
// EXEC: exec.copy %[[NEW]] to %[[W]] {name = "to_device"} : <4xf32, host>, <4xf32>
func.func @update(%x: tensor<4xf32> {nn.input = "x"}, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>},
    %m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>, dist.memory = "host"}, %v: tensor<4xf32> {nn.state = #nn.state<"w.v", of = "w", init = 0.0>, dist.memory = "host"},
    %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>},
    %bm: tensor<4xf32> {nn.state = #nn.state<"b.m", of = "b", init = 0.0>, dist.memory = "host"}, %bv: tensor<4xf32> {nn.state = #nn.state<"b.v", of = "b", init = 0.0>, dist.memory = "host"},
    %t: tensor<i64> {nn.step})
    -> (tensor<i64> {nn.updates = "step"}, tensor<4xf32> {nn.updates = "w"}, tensor<4xf32> {nn.updates = "w.m"}, tensor<4xf32> {nn.updates = "w.v"},
        tensor<4xf32> {nn.updates = "b"}, tensor<4xf32> {nn.updates = "b.m"}, tensor<4xf32> {nn.updates = "b.v"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %one = nn.constant dense<1> : tensor<i64>
  %g = nn.relu %x : tensor<4xf32>
  %n = nn.add %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %0:3 = nn.adam_update %w, %g, %m, %v lr = %lr step = %n {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %1:3 = nn.adam_update %b, %g, %bm, %bv lr = %lr step = %n {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %n, %0#0, %0#1, %0#2, %1#0, %1#1, %1#2 : tensor<i64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A master is cast where it lies, so that two bytes go and not four, through views; the copy counts as a parameter. A product is the device's.
// CHECK-LABEL: func.func @cast
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x4xbf16>
// CHECK-SAME: %[[W:[^:]*]]: tensor<8xf32>
// CHECK: %[[VIEW:.*]] = nn.reshape %[[W]]
// CHECK-NEXT: %[[CAST:.*]] = nn.cast %[[VIEW]]
// CHECK-NEXT: %[[COPY:.*]] = exec.transfer %[[CAST]] to device {exec.class = "param"} : tensor<4x2xbf16>
// CHECK-NEXT: nn.matmul %[[X]], %[[COPY]]
// EXEC: exec.program @cast
// EXEC: exec.buffer param at {{.*}} : <4x2xbf16, host>
// EXEC: exec.buffer param at {{.*}} : <4x2xbf16>{{$}}
func.func @cast(%x: tensor<2x4xbf16> {nn.input = "x"}, %w: tensor<8xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>, dist.memory = "host"})
    -> (tensor<2x2xbf16> {nn.output = "y"}) {
  %v = nn.reshape %w : tensor<8xf32> -> tensor<4x2xf32>
  %c = nn.cast %v {exec.class = "param"} : tensor<4x2xf32> -> tensor<4x2xbf16>
  %y = nn.matmul %x, %c : (tensor<2x4xbf16>, tensor<4x2xbf16>) -> tensor<2x2xbf16>
  return %y : tensor<2x2xbf16>
}

// -----

// Communication, library calls and results read a copy on the device, and state that a device makes goes to the host.
// CHECK-LABEL: func.func @others
// CHECK-SAME: %[[M:[^:]*]]: tensor<2x2xf32> {dist.memory
// CHECK: %[[COPY:.*]] = exec.transfer %[[M]] to device
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce {"data"} sum %[[COPY]]
// CHECK-NEXT: nn.matmul %[[COPY]], %[[SUM]]
// CHECK-NEXT: %[[NEW:.*]] = exec.transfer %{{.*}} to host
// CHECK-NEXT: return %[[NEW]], %[[COPY]]
// EXEC: exec.program @others
// EXEC: %[[M:.*]] = exec.arg state {{.*}} : <2x2xf32, host>
// EXEC: exec.copy %{{.*}} to %[[M]] {name = "to_host"}
dist.mesh @mesh <["data"=2]>
func.func @others(%m: tensor<2x2xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>, dist.memory = "host"}, %w: tensor<2x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<2x2xf32> {nn.updates = "w.m"}, tensor<2x2xf32> {nn.output = "m"}) {
  %s = dist.all_reduce {"data"} sum %m {reason = "by hand"} : tensor<2x2xf32>
  %p = nn.matmul %m, %s : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %p, %m : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// What a cast has only widened crosses as it was, and is widened where it is read.
// CHECK-LABEL: func.func @narrow
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xbf16>
// CHECK: %[[G:.*]] = nn.relu %[[X]]
// CHECK-NEXT: %[[COPY:.*]] = exec.transfer %[[G]] to host : tensor<4xbf16>
// CHECK: %[[WIDE:.*]] = nn.cast %[[COPY]] : tensor<4xbf16> -> tensor<4xf32>
// CHECK-NEXT: nn.sgd_update %{{.*}}, %[[WIDE]]
// EXEC: exec.program @narrow
// EXEC: exec.copy {{.*}} {name = "to_host"} : <4xbf16>, <4xbf16, host>
// EXEC-NOT: exec.copy
// EXEC: exec.launch @k_cast_sgd_update
// EXEC-NOT: exec.copy
func.func @narrow(%x: tensor<4xbf16> {nn.input = "x"}, %w: tensor<4xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>, dist.memory = "host"})
    -> (tensor<4xf32> {nn.updates = "w"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %g = nn.relu %x : tensor<4xbf16>
  %c = nn.cast %g : tensor<4xbf16> -> tensor<4xf32>
  %0 = nn.sgd_update %w, %c lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %0 : tensor<4xf32>
}

// -----

// Of two casts that widen the second is made where it is read: that runs where what came is.
// CHECK-LABEL: func.func @twice
// CHECK: %[[WIDE:.*]] = nn.cast %{{.*}} : tensor<4xbf16> -> tensor<4xf32>
// CHECK-NEXT: %[[COPY:.*]] = exec.transfer %[[WIDE]] to host : tensor<4xf32>
// CHECK: %[[WIDER:.*]] = nn.cast %[[COPY]] : tensor<4xf32> -> tensor<4xf64>
// CHECK: nn.momentum_update %{{.*}}, %[[WIDER]]
// EXEC: func.func private @k_cast_momentum_update_{{.*}} attributes {exec.host
// EXEC: exec.program @twice
// EXEC: exec.copy {{.*}} {name = "to_host"} : <4xf32>, <4xf32, host>
func.func @twice(%x: tensor<4xbf16> {nn.input = "x"}, %w: tensor<4xf64> {nn.param = #nn.param<"w", init = zeros>},
    %m: tensor<4xf64> {nn.state = #nn.state<"w.velocity", of = "w", init = 0.0>, dist.memory = "host"})
    -> (tensor<4xf64> {nn.updates = "w"}, tensor<4xf64> {nn.updates = "w.velocity"}) {
  %lr = nn.constant dense<0.1> : tensor<f64>
  %c = nn.cast %x : tensor<4xbf16> -> tensor<4xf32>
  %d = nn.cast %c : tensor<4xf32> -> tensor<4xf64>
  %0:2 = nn.momentum_update %w, %d, %m lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf64>, tensor<f64>
  return %0#0, %0#1 : tensor<4xf64>, tensor<4xf64>
}

// -----

// Equal ops on the two sides are two kernels.
// CHECK-LABEL: func.func @both
// EXEC: func.func private @k_relu_[[HOST:[0-9]+]]{{.*}} attributes {exec.host
// EXEC: func.func private @k_relu_[[DEVICE:[0-9]+]]{{.*}} attributes {exec.kernel}
// EXEC: exec.launch @k_relu_[[HOST]] ins(%{{.*}} : !exec.buffer<4xf32, host>)
// EXEC: exec.launch @k_relu_[[DEVICE]] ins(%{{.*}} : !exec.buffer<4xf32>)
func.func @both(%x: tensor<4xf32> {nn.input = "x"}, %m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>, dist.memory = "host"},
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<4xf32> {nn.updates = "w.m"}, tensor<4xf32> {nn.output = "y"}) {
  %0 = nn.relu %m : tensor<4xf32>
  %1 = nn.relu %x : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Without an argument on the host nothing moves.
// CHECK-LABEL: func.func @none
// CHECK-NOT: exec.transfer
// EXEC: exec.program @none infer arena = {{[0-9]+}} rows
func.func @none(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %0 = nn.relu %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
