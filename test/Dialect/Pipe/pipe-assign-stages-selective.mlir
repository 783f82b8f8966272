// What selective recomputation keeps of a layer are its products. Attention is computed again, though it multiplies: of
// layers that are nothing else as much is kept as under full recomputation.
// DEFINE: %{cut} = not shoal-opt %s --pipe-assign-stages="microbatches=2 lighter=9
// RUN: %{cut} recompute=selective" 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: %{cut} recompute=full" 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: %{cut}" 2>&1 | FileCheck %s --check-prefix=KEPT
// AGAIN: error: no cut into 2 stages holds fewer than about 320 bytes
// KEPT: error: no cut into 2 stages holds fewer than about 656 bytes
dist.mesh @mesh <["pipe"=2]>
func.func @layers(%x: tensor<2x6x1x1x4xf32> {nn.input = "x"}, %k: tensor<2x6x1x4xf32> {nn.input = "k"},
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<2x6x1x1x4xf32> {nn.output = "o"}) {
  %o0, %l0 = nn.attention %x, %k, %k scale = 0.5 {nn.layer = "h.0"} : (tensor<2x6x1x1x4xf32>, tensor<2x6x1x4xf32>, tensor<2x6x1x4xf32>) -> tensor<2x6x1x1x4xf32>
  %0 = nn.mul %o0, %w {nn.layer = "h.0"} : (tensor<2x6x1x1x4xf32>, tensor<4xf32>) -> tensor<2x6x1x1x4xf32>
  %o1, %l1 = nn.attention %0, %k, %k scale = 0.5 {nn.layer = "h.1"} : (tensor<2x6x1x1x4xf32>, tensor<2x6x1x4xf32>, tensor<2x6x1x4xf32>) -> tensor<2x6x1x1x4xf32>
  %1 = nn.mul %o1, %w {nn.layer = "h.1"} : (tensor<2x6x1x1x4xf32>, tensor<4xf32>) -> tensor<2x6x1x1x4xf32>
  %o2, %l2 = nn.attention %1, %k, %k scale = 0.5 {nn.layer = "h.2"} : (tensor<2x6x1x1x4xf32>, tensor<2x6x1x4xf32>, tensor<2x6x1x4xf32>) -> tensor<2x6x1x1x4xf32>
  %2 = nn.mul %o2, %w {nn.layer = "h.2"} : (tensor<2x6x1x1x4xf32>, tensor<4xf32>) -> tensor<2x6x1x1x4xf32>
  %o3, %l3 = nn.attention %2, %k, %k scale = 0.5 {nn.layer = "h.3"} : (tensor<2x6x1x1x4xf32>, tensor<2x6x1x4xf32>, tensor<2x6x1x4xf32>) -> tensor<2x6x1x1x4xf32>
  %3 = nn.mul %o3, %w {nn.layer = "h.3"} : (tensor<2x6x1x1x4xf32>, tensor<4xf32>) -> tensor<2x6x1x1x4xf32>
  return %3 : tensor<2x6x1x1x4xf32>
}
