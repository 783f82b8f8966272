// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-context-parallel
// RUN: not shoal-opt %s -split-input-file --dist-context-parallel=mode=ulysses 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: not shoal-opt %s -split-input-file --dist-context-parallel=mode=zigzag 2>&1 | FileCheck %s --check-prefix=ZIGZAG
// RUN: not shoal-opt %s -split-input-file --dist-context-parallel=mode=tree 2>&1 | FileCheck %s --check-prefix=MODE
// MODE: mode must be ring, zigzag, ulysses, allgather, hybrid, got: tree

// expected-error @+1 {{context parallelism needs mesh axis "context", the mesh is #dist.mesh<["data"=2]>}}
dist.mesh @mesh <["data"=2]>

// -----

// There is no attention.
dist.mesh @mesh <["context"=2]>
// expected-error @+1 {{context parallelism shards the sequence of nn.attention, and the model has none}}
func.func @f(%x: tensor<4x6xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<4x6xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The axis is taken by hand.
dist.mesh @mesh <["context"=2]>
// expected-error @+1 {{context parallelism shards dimension 1 over "context", but its annotation uses the axis elsewhere: #dist.sharding<@mesh, [{"context"}, {}, {}, {}]>}}
func.func @f(%x: tensor<2x4x1x2xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"context"}, {}, {}, {}]>}) -> (tensor<2x4x1x1x2xf32> {nn.output = "o"}) {
  %q = nn.reshape %x : tensor<2x4x1x2xf32> -> tensor<2x4x1x1x2xf32>
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32>
  return %o : tensor<2x4x1x1x2xf32>
}

// -----

// The hand keeps the tokens of the only input together.
dist.mesh @mesh <["context"=2]>
// expected-error @+1 {{context parallelism over "context": no input has the sequence of nn.attention as a dimension of its own, or annotations by hand keep it whole}}
func.func @f(%x: tensor<2x4x1x2xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {}, {}, {}]>}) -> (tensor<2x4x1x1x2xf32> {nn.output = "o"}) {
  %q = nn.reshape %x : tensor<2x4x1x2xf32> -> tensor<2x4x1x1x2xf32>
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32>
  return %o : tensor<2x4x1x1x2xf32>
}

// -----

// Scores of one's own have the sequence twice.
dist.mesh @mesh <["context"=2]>
func.func @f(%x: tensor<2x4x1x2xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %q = nn.reshape %x : tensor<2x4x1x2xf32> -> tensor<2x4x1x1x2xf32>
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32>
  %a = nn.reshape %o : tensor<2x4x1x1x2xf32> -> tensor<2x4x2xf32>
  // expected-error @+1 {{a value has the sequence of nn.attention in dimensions 1 and 2, and no axis shards both, got: 'tensor<2x4x4xf32>'; compute scores by nn.attention}}
  %s = nn.matmul %a, %a {transpose_b} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x4xf32>
  %l = nn.reduce sum %s dims = [0, 1, 2] : tensor<2x4x4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// A parameter that mixes tokens has them twice, too.
dist.mesh @mesh <["context"=2]>
func.func @f(%x: tensor<2x4x1x2xf32> {nn.input = "x"},
    // expected-error @+1 {{'func.func' op argument 1 "t": the sequence of nn.attention is in dimensions 0 and 1, and no axis shards both, got: 'tensor<4x4xf32>'; context parallelism shards tokens that nn.attention alone mixes: leave out --context-parallel, or mix tokens by nn.attention}}
    %t: tensor<4x4xf32> {nn.param = #nn.param<"t", init = kaiming_uniform>}) -> (tensor<f32> {nn.loss}) {
  %q = nn.reshape %x : tensor<2x4x1x2xf32> -> tensor<2x4x1x1x2xf32>
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32>
  %a = nn.reshape %o : tensor<2x4x1x1x2xf32> -> tensor<2x4x2xf32>
  %at = nn.transpose %a [0, 2, 1] : tensor<2x4x2xf32> -> tensor<2x2x4xf32>
  %m = nn.matmul %at, %t : (tensor<2x2x4xf32>, tensor<4x4xf32>) -> tensor<2x2x4xf32>
  %s = nn.add %m, %at : (tensor<2x2x4xf32>, tensor<2x2x4xf32>) -> tensor<2x2x4xf32>
  %l = nn.reduce sum %s dims = [0, 1, 2] : tensor<2x2x4xf32> -> tensor<f32>
  return %l : tensor<f32>
}

// -----

// Rows and tokens in one dimension: no shard of tokens.
dist.mesh @mesh <["context"=2]>
func.func @f(%x: tensor<2x4x1x2xf32> {nn.input = "x"}) -> (tensor<8x2xf32> {nn.output = "o"}) {
  %q = nn.reshape %x : tensor<2x4x1x2xf32> -> tensor<2x4x1x1x2xf32>
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32>
  // expected-remark @+1 {{merges the sequence with other dimensions, so that each device has all tokens here; keep batch and sequence apart for context parallelism to shard them}}
  %m = nn.reshape %o : tensor<2x4x1x1x2xf32> -> tensor<8x2xf32>
  return %m : tensor<8x2xf32>
}

// -----

// Fewer heads than devices; two sequences.
// HEADS: Ulysses deals 3 devices out to key/value heads, as many as divide these, and to the query heads of one, got: 2 key/value heads of 1 query head each; take --context-parallel ring
// ZIGZAG: the zigzag order needs one length of the sequence, got: 6 and 5; take --context-parallel ring
dist.mesh @mesh <["context"=3]>
func.func @f(%q: tensor<2x6x2x1x2xf32> {nn.input = "q"}, %k: tensor<2x5x2x2xf32> {nn.input = "k"}) -> (tensor<2x6x2x1x2xf32> {nn.output = "o"}) {
  %o, %lse = nn.attention %q, %k, %k scale = 1.0 : (tensor<2x6x2x1x2xf32>, tensor<2x5x2x2xf32>, tensor<2x5x2x2xf32>) -> tensor<2x6x2x1x2xf32>
  return %o : tensor<2x6x2x1x2xf32>
}
