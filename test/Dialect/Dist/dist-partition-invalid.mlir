// What cannot be partitioned is refused, never gathered or replicated in silence.
// RUN: shoal-opt %s --split-input-file --verify-diagnostics --dist-partition=axes=x

// The minor axis of a dimension is not a contiguous part of it.
dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{dimension 0 is sharded by {"y", "x"}: its minor axis "x" cannot be partitioned before its major axis "y"; write "x" first}}
func.func @minor_first(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"y", "x"}]>}) {
  return
}

// -----

// Shards over two runs would not be those over both axes.
dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{dimension of size 5 is sharded by {"x", "y"}, which does not divide it: partition {"x"} and {"y"} in one run, or shard by one of them}}
func.func @padded_in_two_runs(%a: tensor<5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}]>}) {
  return
}

// -----

// expected-error @+1 {{axis to partition must be one of the mesh's, got: "x"}}
dist.mesh @mesh <["data"=2]>

// -----

// An op without a sharding rule meets a sharded value.
dist.mesh @mesh <["x"=2]>
func.func @no_rule(%a: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  // expected-error @+1 {{'arith.addf' op has no sharding rule, but uses a value that lies as [{"x"}]: implement ShardingRuleOpInterface, or reshard the value to be whole}}
  %0 = arith.addf %a, %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A whole value is no sum of parts.
dist.mesh @mesh <["x"=2]>
func.func @whole_to_partial(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{no collectives lead from [{}] to [{}] sum{"x"}: a whole value cannot become partial}}
  %0 = dist.reshard %a <@mesh, [{}], unreduced=sum{"x"}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// A non-linear op cannot leave its result partial.
dist.mesh @mesh <["x"=2]>
func.func @non_linear(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
  %0 = nn.reduce sum %a dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  // expected-error @+1 {{'nn.relu' op cannot leave result 0 partial as annotated: [{}] sum{"x"}}}
  %1 = nn.relu %0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A local program written by hand has nothing to partition, which is said.
dist.mesh @mesh <["x"=2]>
// expected-remark @+1 {{holds collectives and no sharding: a local program already, which is left as it is}}
func.func @hand_written(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce {"x"} sum %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Rows of a whole value cannot become partial on the way into a micro-batch.
dist.mesh @mesh <["x"=2, "y"=2]>
func.func @partial_argument(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {}]>}) -> tensor<4xf32> {
  // expected-error @+1 {{a whole value cannot become partial (input 0 of the micro-batches}}
  %0 = dist.accumulate(%a) microbatches = 2 attributes {dist.arg_shardings = [#dist.sharding<@mesh, [{"y"}, {}], unreduced=sum{"x"}>]} {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
