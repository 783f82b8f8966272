// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-verify-global

// The contract of annotated L1. What dist-propagate makes passes (dist-propagate.mlir); here is what does not.

dist.mesh @mesh <["x"=2]>

// A partial value that is reduced before an op that is not linear in it: nothing to say.
func.func @reduced_first(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8x4xf32> -> tensor<8xf32>
  %1 = nn.relu %0 {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// A partial value through a non-linear op.
func.func @nonlinear(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-note @+1 {{this operand is partial: #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}}
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8x4xf32> -> tensor<8xf32>
  // expected-error @+1 {{result #0 is annotated #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>, but the op makes no such partial value: it neither reduces a dimension sharded over that axis nor is linear in its partial operands; reduce them first}}
  %1 = nn.relu %0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// A bias is no partial value, so the sum with one is none.
func.func @bias(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-note @+1 {{this operand is partial}}
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8x4xf32> -> tensor<8xf32>
  // expected-error @+1 {{the op makes no such partial value}}
  %1 = nn.add %0, %b {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// A sum is no maximum.
func.func @kind(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error @+1 {{the op makes no such partial value}}
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=max{"x"}>]} : tensor<8x4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{argument must be reduced, got: #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}}
func.func @argument(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}) {
  return
}

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{function result #0 must be reduced, got: #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}}
func.func @result(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}) {
  %0 = nn.reduce sum %a dims = [1] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8x4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{argument has no sharding; run dist-propagate}}
func.func @missing(%a: tensor<8xf32>) {
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @open(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error @+1 {{result has an open dimension 0: #dist.sharding<@mesh, [{"x", ?}]>; run dist-propagate}}
  %0 = nn.relu %a {dist.shardings = [#dist.sharding<@mesh, [{"x", ?}]>]} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @collective(%a: tensor<8xf32>) {
  // expected-error @+1 {{belongs to a local program (L2); a global one names layouts by dist.reshard}}
  %0 = dist.all_reduce {"x"} sum %a : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
// expected-note @+1 {{the operand is defined here}}
func.func @no_rule(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) {
  // expected-error @+1 {{has no sharding rule, and meets an operand sharded as}}
  %0 = math.sin %a {dist.shardings = [#dist.sharding<@mesh, [{"x"}]>]} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @reshard_to_partial(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error @+1 {{cannot make a value partial: its input lies as #dist.sharding<@mesh, [{}]>, wanted: #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}}
  %0 = dist.reshard %a <@mesh, [{}], unreduced=sum{"x"}> {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @reshard_annotated(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error @+1 {{result is annotated #dist.sharding<@mesh, [{}]>, the op reshards to #dist.sharding<@mesh, [{"x"}]>}}
  %0 = dist.reshard %a <@mesh, [{"x"}]> {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{result 0 "w": updates argument "w" and has no sharding; run dist-propagate}}
func.func @updates(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {nn.updates = "w"}) {
  return %w : tensor<8xf32>
}

// -----

// What is computed again for the backward pass has become one with what it repeats.
func.func @merged_with_its_copy(%x: tensor<8x4xf32> {nn.input = "x"}, %w: tensor<4x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<4x2xf32> {nn.grad = "w"}) {
  // expected-error @+1 {{is marked 'nn.recompute', and the forward pass reads it: it must serve the backward pass alone}}
  %0 = nn.tanh %x {nn.layer = "a", nn.recompute} : tensor<8x4xf32>
  %1 = nn.matmul %0, %w {nn.layer = "a"} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<8x2xf32> -> tensor<f32>
  %g = nn.matmul %0, %1 {nn.layer = "a", transpose_a} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %loss, %g : tensor<f32>, tensor<4x2xf32>
}

// -----

// Buckets are made behind this border.
func.func @bucket(%w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'dist.unpack' op is made by dist-pack; remove it}}
  %0 = dist.unpack %b[0:4] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
