// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-context-parallel=mode=zigzag

// Seven tokens are no two equal chunks for each device.
dist.mesh @mesh <["context"=2]>
func.func @f(%x: tensor<2x7x1x2xf32> {nn.input = "x"}) -> (tensor<2x7x1x1x2xf32> {nn.output = "o"}) {
  %q = nn.reshape %x : tensor<2x7x1x2xf32> -> tensor<2x7x1x1x2xf32>
  // expected-remark @+1 {{gathers all tokens on each device to bring them into the original order: 7 tokens are no two equal chunks for each of 2 devices; with a multiple of 4 each device sends two chunks instead}}
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x7x1x1x2xf32>, tensor<2x7x1x2xf32>, tensor<2x7x1x2xf32>) -> tensor<2x7x1x1x2xf32>
  return %o : tensor<2x7x1x1x2xf32>
}

// -----

// Eight are.
dist.mesh @mesh <["context"=2]>
func.func @f(%x: tensor<2x8x1x2xf32> {nn.input = "x"}) -> (tensor<2x8x1x1x2xf32> {nn.output = "o"}) {
  %q = nn.reshape %x : tensor<2x8x1x2xf32> -> tensor<2x8x1x1x2xf32>
  %o, %lse = nn.attention %q, %x, %x scale = 1.0 : (tensor<2x8x1x1x2xf32>, tensor<2x8x1x2xf32>, tensor<2x8x1x2xf32>) -> tensor<2x8x1x1x2xf32>
  return %o : tensor<2x8x1x1x2xf32>
}
