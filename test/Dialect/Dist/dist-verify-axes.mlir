// RUN: shoal-opt %s --dist-verify-axes --split-input-file --verify-diagnostics -o /dev/null
// Evaluation keeps the mesh of training.
// RUN: shoal-opt %s --shoal-global=mode=eval --split-input-file -o /dev/null

// An axis that no sharding names.
// expected-error @+1 {{mesh axis 'tensor' of size 3 shards nothing; shard over it by --tensor-parallel, annotate a value with it or take it out of the mesh}}
dist.mesh @mesh <["data"=2, "tensor"=3]>

func.func @idle(%x: tensor<6x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// One device has nothing to share, and an op's annotation counts as an argument's does.
dist.mesh @mesh <["data"=2, "pipe"=1, "tensor"=3]>

func.func @used(%x: tensor<6x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.relu %x {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {"tensor"}]>]} : tensor<6x4xf32>
  %1 = nn.reduce sum %0 dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Of the sequence.
// expected-error @+1 {{mesh axis 'context' of size 2 shards nothing; shard over it by --context-parallel, annotate a value with it or take it out of the mesh}}
dist.mesh @mesh <["context"=2]>

func.func @tokens(%x: tensor<6x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Of its heads.
// expected-error @+1 {{mesh axis 'ulysses' of size 3 shards nothing; shard over it by --context-parallel hybrid, annotate a value with it or take it out of the mesh}}
dist.mesh @mesh <["ulysses"=3]>

func.func @heads(%x: tensor<6x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Without a mesh there is no axis.
func.func @none(%x: tensor<6x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// One of the user's own, which no flag knows.
// expected-error @+1 {{mesh axis 'rows' of size 2 shards nothing; annotate a value with it or take it out of the mesh}}
dist.mesh @mesh <["rows"=2]>

func.func @unknown(%x: tensor<6x4xf32> {nn.input = "x"}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Buckets lie over batch axes.
dist.mesh @mesh <["data"=2, "tensor"=3]>

func.func @flat_over_tensor(
    %x: tensor<6x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {"tensor"}]>},
    // expected-error @+1 {{"w" must lie flat over axes that a batch is split over (replica, data), got: #dist.flat<{"data", "tensor"}>; shard it over others by dist.sharding}}
    %w: tensor<12xf32> {nn.param = #nn.param<"w", init = ones>, dist.flat = #dist.flat<{"data", "tensor"}>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<12xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// There is no batch.
dist.mesh @mesh <["data"=2]>

func.func @no_batch(
    // expected-error @+1 {{"w" lies flat over the axes of a batch, and no input has one, got: #dist.flat<{"data"}>; shard it by dist.sharding}}
    %w: tensor<12xf32> {nn.param = #nn.param<"w", init = ones>, dist.flat = #dist.flat<{"data"}>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<12xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
