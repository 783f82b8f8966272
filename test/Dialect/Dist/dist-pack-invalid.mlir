// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-pack

// An axis that is not there would pack nothing, in silence.
// expected-error @+1 {{packing gradients needs mesh axis "data", the mesh is #dist.mesh<["tensor"=2]>}}
dist.mesh @mesh <["tensor"=2]>

// -----

// One device has no gradient to pack.
module {
}

// -----

// An evaluation finds its parameters in the buckets of training, of which the first here is missing.
dist.mesh @mesh <["data"=2]>
// expected-error @+1 {{the bucket in front of the one in which "w" goes on must hold its elements up to 4}}
func.func @evaluation(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<8xf32> {nn.output = "y"})
    attributes {nn.evaluation, dist.buckets = [{dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<8xf32>[4:8]>]>,
                                                dist.flat = #dist.flat<{"data"}>, dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{"data"}]>>,
                                                nn.param = #nn.param<"bucket.1", init = zeros>}]} {
  %0 = nn.relu %w {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["data"=2]>
// expected-error @+1 {{buckets must hold all 8 elements of "w", got: 4}}
func.func @evaluation(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<8xf32> {nn.output = "y"})
    attributes {nn.evaluation, dist.buckets = [{dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<8xf32>[0:4]>]>,
                                                dist.flat = #dist.flat<{"data"}>, dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{"data"}]>>,
                                                nn.param = #nn.param<"bucket.0", init = zeros>}]} {
  %0 = nn.relu %w {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["data"=2]>
// expected-error @+1 {{a bucket that is whole must hold whole tensors, got: a part of "w" or of one behind it}}
func.func @evaluation(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<8xf32> {nn.output = "y"})
    attributes {nn.evaluation, dist.buckets = [{dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros>, tensor<8xf32>[0:4]>]>,
                                                dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{}]>>,
                                                nn.param = #nn.param<"bucket.0", init = zeros>}]} {
  %0 = nn.relu %w {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Each run packs what lies flat over its own axes: over those of two, none would.
dist.mesh @mesh <["data"=2, "tensor"=2]>
func.func @two_runs(
    // expected-error @+1 {{"w" must lie flat over axes that are partitioned together, all batch axes or none, got: #dist.flat<{"data", "tensor"}, per_use>}}
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.flat = #dist.flat<{"data", "tensor"}, per_use>})
    -> (tensor<4xf32> {nn.output = "y"}) {
  return %w : tensor<4xf32>
}

// -----

dist.mesh @mesh <["data"=2, "tensor"=2]>
func.func @gradient_of_two_runs(%x: tensor<4xf32>, %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<4xf32> {nn.grad = "w", dist.flat = #dist.flat<{"tensor", "data"}>}) {
  // expected-error @+1 {{gradient of "w" must lie flat over axes that are partitioned together, all batch axes or none, got: #dist.flat<{"tensor", "data"}>}}
  %0 = nn.neg %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
