// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-propagate

// Where tensors disagree the largest operand's wish spreads, and what does not fit is a remark with both places.

dist.mesh @mesh <["x"=2, "y"=2]>

// One dimension, two axes: the large operand stays.
func.func @elementwise(
    // expected-note @+1 {{the value lies as #dist.sharding<@mesh, [{"y"}]>}}
    %small: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}]>},
    %large: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  // expected-remark @+1 {{'nn.add' reads operand #0 as #dist.sharding<@mesh, [{"x"}]>: it will be resharded}}
  %0 = nn.add %small, %large : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

dist.mesh @mesh <["x"=2, "y"=2]>

// Ties: the first operand.
func.func @tie(
    %a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}]>},
    // expected-note @+1 {{the value lies as #dist.sharding<@mesh, [{"x"}]>}}
    %b: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // expected-remark @+1 {{'nn.add' reads operand #1 as #dist.sharding<@mesh, [{"y"}]>: it will be resharded}}
  %0 = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// One axis for two factors: rows of the small matrix give way to columns of the large one.
func.func @two_factors(
    // expected-note @+1 {{the value lies as #dist.sharding<@mesh, [{"x"}, {}]>}}
    %a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<4x64xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x64xf32> {
  // expected-remark @+1 {{'nn.matmul' reads operand #0 as #dist.sharding<@mesh, [{}, {}]>: it will be resharded}}
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

dist.mesh @mesh <["x"=2, "y"=2]>

// {"x","y"} is not {"y","x"}.
func.func @order(
    %a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}]>},
    // expected-note @+1 {{the value lies as #dist.sharding<@mesh, [{"y", "x"}]>}}
    %b: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"y", "x"}]>}) -> tensor<8xf32> {
  // expected-remark @+1 {{'nn.add' reads operand #1 as #dist.sharding<@mesh, [{"x", "y"}]>: it will be resharded}}
  %0 = nn.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// The function's result is annotated by hand: what is made otherwise is resharded at the return.
func.func @result(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) {
  // expected-note @+1 {{the value lies as #dist.sharding<@mesh, [{}, {"x"}]>}}
  %0 = nn.relu %a : tensor<8x8xf32>
  // expected-remark @+1 {{'func.return' reads operand #0 as #dist.sharding<@mesh, [{"x"}, {}]>: it will be resharded}}
  return %0 : tensor<8x8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// Partial values are reduced, and an axis of size 1 moves nothing: no remarks.
func.func @none(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<4x2xf32>)
    -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.relu %0 : tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// An op without a sharding rule never meets a sharded operand silently.
// expected-note @+1 {{the operand is defined here}}
func.func @no_rule(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error @+1 {{has no sharding rule, and meets an operand sharded as #dist.sharding<@mesh, [{"x"}]>; implement ShardingRuleOpInterface for 'math.sin', or put a dist.reshard to a replicated layout before it}}
  %0 = math.sin %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// A partial operand counts as sharded too.
func.func @no_rule_partial(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8xf32> {
  // expected-note @+1 {{the operand is defined here}}
  %0 = nn.reduce sum %a dims = [1] : tensor<8x4xf32> -> tensor<8xf32>
  // expected-error @+1 {{has no sharding rule, and meets an operand sharded as #dist.sharding<@mesh, [{}], unreduced=sum{"x"}>}}
  %1 = math.sin %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// Whole operands are welcome.
func.func @no_rule_whole(%a: tensor<8xf32>, %b: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %r = dist.reshard %b <@mesh, [{}]> : tensor<8xf32>
  %0 = math.sin %r : tensor<8xf32>
  %1 = math.sin %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// expected-error @+2 {{result 0 "w": updates argument "w" and must have its sharding #dist.sharding<@mesh, [{"x"}]>, got: #dist.sharding<@mesh, [{}]>}}
// expected-note @+1 {{the argument is here}}
func.func @updates(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {nn.updates = "w", dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return %w : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>

// expected-error @+1 {{must have one block to be sharded, got: 2}}
func.func @blocks(%w: tensor<8xf32>) -> tensor<8xf32> {
  llvm.br ^bb1
^bb1:
  return %w : tensor<8xf32>
}
