// RUN: shoal-opt %s --dist-explain --split-input-file --verify-diagnostics -o /dev/null

// A global program has no collectives yet: that it sends nothing would be wrong.
dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{still has a sharding over "x": #dist.sharding<@mesh, [{"x"}, {}]>; run dist-partition over that axis}}
func.func @annotated(%a: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x2xf32> {
  %0 = nn.relu %a : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @resharded(%a: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{belongs to a global program (L1); run dist-partition}}
  %0 = dist.reshard %a <@mesh, [{}, {}]> : tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

// Of several blocks nobody knows how often each runs.
// expected-error @+1 {{must have one block to be explained, got: 2}}
func.func @blocks(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
^bb1:
  return %a : tensor<4xf32>
}

// -----

// Loops are told as they run, which the position and constants must say.
dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{control flow and peers may depend only on the position and on constants, got: 'index'}}
func.func @unknown(%a: tensor<4xf32>, %steps: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %i = %zero to %steps step %one iter_args(%sum = %a) -> (tensor<4xf32>) {
    %1 = dist.all_reduce {"x"} sum %sum {reason = "round"} : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Messages between stages are not there yet: that nothing is sent would be wrong.
dist.mesh @mesh <["pipe"=2]>
func.func private @step.stage0.forward(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls a stage of a pipeline, whose messages nothing shows yet; run pipe-unroll and dist-narrow-positions before}}
  %0 = pipe.call forward stage 0 @step.stage0.forward(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
