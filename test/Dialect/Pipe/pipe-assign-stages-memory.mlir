// DEFINE: %{cut} = shoal-opt %s --pipe-assign-stages="held-whole=0.5 microbatches=2
// RUN: %{cut} lighter=0" | FileCheck %s --check-prefix=FAST
// RUN: %{cut} lighter=1" | FileCheck %s --check-prefix=LIGHT
// RUN: not %{cut} lighter=2" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %{cut} lighter=1 schedule=gpipe" 2>&1 | FileCheck %s --check-prefix=GPIPE
// RUN: %{cut} lighter=1 recompute=full" | FileCheck %s --check-prefix=LIGHT

// Four equal layers of 144 bytes of parameters and 384 bytes of activations. The fastest cut is in the middle. Under 1f1b
// the first stage keeps both micro-batches, so that two layers are 2 * (144 / 2 + 384) = 912 bytes there, and the last
// one, so that three are 3 * (144 / 2 + 384 / 2) = 792: a lighter cut, and there is no other. Under gpipe three are 1368,
// and no cut is lighter than the middle. With layers that are computed again two are 2 * (144 / 2 + 192) = 528, and three
// of the last 504.
// NONE: error: no cut into 2 stages holds fewer than about 792 bytes of each, asked for 2 lighter ones than the fastest
// GPIPE: error: no cut into 2 stages holds fewer than about 912 bytes of each
dist.mesh @mesh <["pipe"=2]>
func.func @layers(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>},
    %b: tensor<6x6xf32> {nn.param = #nn.param<"b", init = zeros>},
    %c: tensor<6x6xf32> {nn.param = #nn.param<"c", init = zeros>},
    %d: tensor<6x6xf32> {nn.param = #nn.param<"d", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // FAST-COUNT-4: pipe.stage = 0
  // FAST-COUNT-4: pipe.stage = 1
  // LIGHT-COUNT-2: pipe.stage = 0
  // LIGHT-COUNT-6: pipe.stage = 1
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
