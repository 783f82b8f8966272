// RUN: shoal-opt %s --dist-verify-axes --verify-diagnostics -o /dev/null

// Stages of a pipeline are no shards.
// expected-error @+1 {{mesh axis 'pipe' is for the stages of a pipeline, and no sharding names it; shard over another axis}}
dist.mesh @mesh <["pipe"=2]>

func.func @stages(%x: tensor<6x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"pipe"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %x dims = [0, 1] : tensor<6x4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
