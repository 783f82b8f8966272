// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-sequence-parallel

// Nothing is sharded over the axis, or there is no sequence.
// expected-error @+1 {{sequence parallelism over "tensor" finds no residual stream: no product with a parameter that the axis shards has a dimension for the sequence beside the batch}}
module {
  dist.mesh @mesh <["tensor"=2]>
  func.func @f(%x: tensor<10x6xf32> {nn.input = "x"},
               %w: tensor<6x4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>}) -> (tensor<f32> {nn.loss}) {
    %0 = nn.matmul %x, %w : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
    %loss = nn.reduce sum %0 dims = [0, 1] : tensor<10x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @+1 {{sequence parallelism needs mesh axis "tensor", the mesh is #dist.mesh<["data"=2]>}}
dist.mesh @mesh <["data"=2]>
