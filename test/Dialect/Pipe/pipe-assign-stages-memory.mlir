// RUN: shoal-opt %s --pipe-assign-stages="live=4,1 microbatches=4" | FileCheck %s --check-prefix=FAST
// RUN: shoal-opt %s --pipe-assign-stages="live=4,1 microbatches=4 memory-limit=1200" | FileCheck %s --check-prefix=FITS
// RUN: shoal-opt %s --pipe-assign-stages="live=1,4 microbatches=4 memory-limit=1200" | FileCheck %s --check-prefix=LAST
// RUN: shoal-opt %s --pipe-assign-stages="live=4,1 microbatches=4 memory-limit=1" | FileCheck %s --check-prefix=FITS
// RUN: shoal-opt %s --pipe-assign-stages="live=4,1 microbatches=4 memory-limit=1200 recompute=full" | FileCheck %s --check-prefix=FAST
// RUN: shoal-opt %s --pipe-assign-stages="live=4,1 microbatches=4 memory-limit=1200 held-whole=1" | FileCheck %s --check-prefix=FAST

// Four equal layers of 144 bytes of parameters and 384 bytes of activations. The fastest cut is in the middle; where the
// first stage keeps four micro-batches, two layers are 2 * (2 * 144 + 384) = 1344 bytes there, so that it takes one of
// them; where no cut fits it takes the one that holds the fewest bytes. What is recomputed, or parameters without
// gradients, leave room for two.
dist.mesh @mesh <["pipe"=2]>
func.func @layers(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>},
    %b: tensor<6x6xf32> {nn.param = #nn.param<"b", init = zeros>},
    %c: tensor<6x6xf32> {nn.param = #nn.param<"c", init = zeros>},
    %d: tensor<6x6xf32> {nn.param = #nn.param<"d", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // FAST-COUNT-4: pipe.stage = 0
  // FAST-COUNT-4: pipe.stage = 1
  // FITS-COUNT-2: pipe.stage = 0
  // FITS-COUNT-6: pipe.stage = 1
  // LAST-COUNT-6: pipe.stage = 0
  // LAST-COUNT-2: pipe.stage = 1
  %0 = nn.matmul %x, %a {nn.layer = "h.0"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 {nn.layer = "h.0"} : tensor<8x6xf32>
  %2 = nn.matmul %1, %b {nn.layer = "h.1"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %3 = nn.relu %2 {nn.layer = "h.1"} : tensor<8x6xf32>
  %4 = nn.matmul %3, %c {nn.layer = "h.2"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %5 = nn.relu %4 {nn.layer = "h.2"} : tensor<8x6xf32>
  %6 = nn.matmul %5, %d {nn.layer = "h.3"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %7 = nn.relu %6 {nn.layer = "h.3"} : tensor<8x6xf32>
  return %7 : tensor<8x6xf32>
}
