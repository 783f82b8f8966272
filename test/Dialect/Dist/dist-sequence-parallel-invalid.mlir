// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-sequence-parallel

// There is no sequence.
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

// -----

// Nothing is sharded over the axis.
// expected-error @+1 {{sequence parallelism over "tensor" lies between products with parameters that this axis shards, and it shards none: add --tensor-parallel or annotate parameters}}
module {
  dist.mesh @mesh <["tensor"=2]>
  func.func @f(%x: tensor<4x10x6xf32> {nn.input = "x"}, %w: tensor<6x4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
    %0 = nn.tensordot %x, %w axes = 1 : (tensor<4x10x6xf32>, tensor<6x4xf32>) -> tensor<4x10x4xf32>
    %loss = nn.reduce sum %0 dims = [0, 1, 2] : tensor<4x10x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Two dimensions would each be the sequence.
dist.mesh @mesh <["tensor"=2]>
func.func @two(%x: tensor<4x10x6xf32> {nn.input = "x"}, %z: tensor<4x8x6xf32> {nn.input = "z"},
               %w: tensor<6x4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>}) -> (tensor<f32> {nn.loss}) {
  // expected-note @+1 {{than here}}
  %0 = nn.tensordot %x, %w axes = 1 : (tensor<4x10x6xf32>, tensor<6x4xf32>) -> tensor<4x10x4xf32>
  // expected-error @+1 {{sequence parallelism needs one dimension for the sequence through the whole residual stream, and the first dimension beside the batch is another one here}}
  %1 = nn.tensordot %z, %w axes = 1 : (tensor<4x8x6xf32>, tensor<6x4xf32>) -> tensor<4x8x4xf32>
  %2 = nn.reduce sum %0 dims = [0, 1, 2] : tensor<4x10x4xf32> -> tensor<f32>
  %3 = nn.reduce sum %1 dims = [0, 1, 2] : tensor<4x8x4xf32> -> tensor<f32>
  %loss = nn.add %2, %3 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
