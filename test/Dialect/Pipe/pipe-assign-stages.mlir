// RUN: shoal-opt %s --pipe-assign-stages -split-input-file | FileCheck %s
// RUN: not shoal-opt %s --pipe-assign-stages="chunks=2" -split-input-file 2>&1 | FileCheck %s --check-prefix=CHUNKS

// Three equal layers over two ranks: the last stage has the loss besides, the first takes two of the layers.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: @layers
func.func @layers(%x: tensor<8x6xf32> {nn.input = "x"}, %y: tensor<8x6xf32> {nn.input = "y"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>},
    %b: tensor<6x6xf32> {nn.param = #nn.param<"b", init = zeros>},
    %c: tensor<6x6xf32> {nn.param = #nn.param<"c", init = zeros>},
    %w: tensor<6x6xbf16> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  // What needs parameters alone, or none, is in no stage.
  // CHECK: nn.cast %{{.*}} : tensor<6x6xbf16>
  // CHECK: nn.relu %{{.*}} : tensor<8x6xf32>
  // CHECK: nn.matmul {{.*}}pipe.stage = 0
  // CHECK: nn.relu {{.*}}pipe.stage = 0
  // CHECK: nn.matmul {{.*}}pipe.stage = 0
  // CHECK: nn.relu {{.*}}pipe.stage = 0
  // CHECK: nn.matmul {{.*}}pipe.stage = 1
  // CHECK: nn.relu {{.*}}pipe.stage = 1
  // CHECK: nn.matmul {{.*}}pipe.stage = 1
  // CHECK: nn.mse_loss {{.*}}pipe.stage = 1
  %wide = nn.cast %w : tensor<6x6xbf16> -> tensor<6x6xf32>
  %target = nn.relu %y : tensor<8x6xf32>
  %0 = nn.matmul %x, %a {nn.layer = "h.0"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 {nn.layer = "h.0"} : tensor<8x6xf32>
  %2 = nn.matmul %1, %b {nn.layer = "h.1"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %3 = nn.relu %2 {nn.layer = "h.1"} : tensor<8x6xf32>
  %4 = nn.matmul %3, %c {nn.layer = "h.2"} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %5 = nn.relu %4 {nn.layer = "h.2"} : tensor<8x6xf32>
  %6 = nn.matmul %5, %wide : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %7 = nn.mse_loss sum %6, %target : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<f32>
  return %7 : tensor<f32>
}
// With two chunks per rank there are four stages.
// CHUNKS-LABEL: @layers
// CHUNKS-COUNT-2: pipe.stage = 0
// CHUNKS-COUNT-2: pipe.stage = 1
// CHUNKS-COUNT-2: pipe.stage = 2
// CHUNKS-COUNT-2: pipe.stage = 3

// -----

// The file says where stages begin: what follows is in them.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: @boundaries
func.func @boundaries(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>},
    %b: tensor<6x6xf32> {nn.param = #nn.param<"b", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // CHECK-COUNT-3: pipe.stage = 0
  // CHECK-COUNT-2: pipe.stage = 1
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 : tensor<8x6xf32>
  %2 = nn.matmul %1, %b : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %3 = nn.relu %2 {pipe.stage = 1 : i64} : tensor<8x6xf32>
  %4 = nn.relu %3 : tensor<8x6xf32>
  return %4 : tensor<8x6xf32>
}

// -----

// A mesh without the axis does not cut the program.
dist.mesh @mesh <["data"=2]>
// CHECK-LABEL: @whole
func.func @whole(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // CHECK-NOT: pipe.stage
  %0 = nn.matmul %x, %a {pipe.stage = 0 : i64} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %1 = nn.relu %0 {pipe.stage = 1 : i64} : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// A boundary may stand on an op that is in no stage itself.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: @on_a_mask
func.func @on_a_mask(%x: tensor<8x6xf32> {nn.input = "x"},
    %a: tensor<6x6xf32> {nn.param = #nn.param<"a", init = zeros>}) -> (tensor<8x6xf32> {nn.output = "o"}) {
  // CHECK: nn.matmul {{.*}}pipe.stage = 0
  // CHECK: nn.relu %{{.*}} : tensor<8x6xf32>
  // CHECK: nn.mul {{.*}}pipe.stage = 1
  %0 = nn.matmul %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
  %mask = nn.relu %x {pipe.stage = 1 : i64} : tensor<8x6xf32>
  %1 = nn.mul %0, %mask : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}
