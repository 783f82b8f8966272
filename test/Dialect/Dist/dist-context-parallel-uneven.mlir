// Lengths at which parts over context and ulysses are no halves of those over context take more messages, which is said.
// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-context-parallel=mode=hybrid -o /dev/null

dist.mesh @mesh <["context"=3, "ulysses"=2]>
func.func @uneven(%q: tensor<1x20x2x1x4xf32> {nn.input = "q"}, %k: tensor<1x20x2x4xf32> {nn.input = "k"}) -> (tensor<1x20x2x1x4xf32> {nn.output = "o"}) {
  // expected-remark @+1 {{a sequence of 20 tokens is cut into parts of 4 over 6 devices and of 7 over 3: tokens move between those before heads are exchanged, in three all-to-alls for one; take a multiple of 6 tokens}}
  %o, %lse = nn.attention %q, %k, %k scale = 0.5 : (tensor<1x20x2x1x4xf32>, tensor<1x20x2x4xf32>, tensor<1x20x2x4xf32>) -> tensor<1x20x2x1x4xf32>
  return %o : tensor<1x20x2x1x4xf32>
}

// -----

// 8 rows over 3 are 2 times 4 over 6, though neither divides 22.
dist.mesh @mesh <["context"=3, "ulysses"=2]>
func.func @padded(%q: tensor<1x22x2x1x4xf32> {nn.input = "q"}, %k: tensor<1x22x2x4xf32> {nn.input = "k"}) -> (tensor<1x22x2x1x4xf32> {nn.output = "o"}) {
  %o, %lse = nn.attention %q, %k, %k scale = 0.5 : (tensor<1x22x2x1x4xf32>, tensor<1x22x2x4xf32>, tensor<1x22x2x4xf32>) -> tensor<1x22x2x1x4xf32>
  return %o : tensor<1x22x2x1x4xf32>
}

// -----

// Keys have a length of their own.
dist.mesh @mesh <["context"=3, "ulysses"=2]>
func.func @cross(%q: tensor<1x24x2x1x4xf32> {nn.input = "q"}, %k: tensor<1x20x2x4xf32> {nn.input = "k"}) -> (tensor<1x24x2x1x4xf32> {nn.output = "o"}) {
  // expected-remark @+1 {{a sequence of 20 tokens is cut into parts of 4 over 6 devices and of 7 over 3}}
  %o, %lse = nn.attention %q, %k, %k scale = 0.5 : (tensor<1x24x2x1x4xf32>, tensor<1x20x2x4xf32>, tensor<1x20x2x4xf32>) -> tensor<1x24x2x1x4xf32>
  return %o : tensor<1x24x2x1x4xf32>
}
