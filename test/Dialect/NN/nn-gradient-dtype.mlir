// RUN: shoal-opt %s --nn-gradient-dtype | FileCheck %s --check-prefixes=CHECK,F32 -enable-var-scope
// RUN: shoal-opt %s --nn-gradient-dtype=to=bf16 | FileCheck %s --check-prefixes=CHECK,BF16 -enable-var-scope
// RUN: not shoal-opt %s --nn-gradient-dtype=to=f64 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: grad-dtype must be f32 or bf16, got: f64

// In f32 a product writes the sums that it has; in bf16 nothing is widened.
// CHECK-LABEL: func.func @product
// F32-SAME: -> (tensor<4x2xf32> {nn.grad = "w"})
// F32-NEXT: %[[G:.*]] = nn.matmul {{.*}} {transpose_a} : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
// F32-NEXT: return %[[G]] : tensor<4x2xf32>
// BF16-SAME: -> (tensor<4x2xbf16> {nn.grad = "w"})
// BF16-NEXT: %[[G:.*]] = nn.matmul {{.*}} {transpose_a} : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
// BF16-NEXT: return %[[G]] : tensor<4x2xbf16>
func.func @product(%x: tensor<8x4xbf16>, %ct: tensor<8x2xbf16>, %w: tensor<4x2xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<4x2xf32> {nn.grad = "w"}) {
  %0 = nn.matmul %x, %ct {transpose_a} : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
  %1 = nn.cast %0 : tensor<4x2xbf16> -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// The gradients of a tied table are added in f32, and so are rows: what was rounded before the sum is not.
// CHECK-LABEL: func.func @sums
// F32: %[[ROWS:.*]] = nn.cast %{{.*}} : tensor<3x4xbf16> -> tensor<3x4xf32>
// F32: %[[TABLE:.*]] = nn.embedding_grad %{{.*}}, %[[ROWS]] {nn.layer = "e"} : (tensor<3xi64>, tensor<3x4xf32>) -> tensor<5x4xf32>
// F32: %[[HEAD:.*]] = nn.tensordot {{.*}} -> tensor<5x4xf32>
// F32: %[[TIED:.*]] = nn.add %[[TABLE]], %[[HEAD]] : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
// F32: %[[G:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<3x4xf32> -> tensor<4xf32>
// F32: return %[[TIED]], %[[G]] : tensor<5x4xf32>, tensor<4xf32>
// BF16: return %{{.*}}, %{{.*}} : tensor<5x4xbf16>, tensor<4xbf16>
func.func @sums(%ids: tensor<3xi64>, %rows: tensor<3x4xbf16>, %ct: tensor<3x5xbf16>, %norm: tensor<3x4xf32>,
    %wte: tensor<5x4xf32> {nn.master, nn.param = #nn.param<"wte", init = zeros>}, %g: tensor<4xf32> {nn.master, nn.param = #nn.param<"g", init = ones>})
    -> (tensor<5x4xf32> {nn.grad = "wte"}, tensor<4xf32> {nn.grad = "g"}) {
  %0 = nn.embedding_grad %ids, %rows {nn.layer = "e"} : (tensor<3xi64>, tensor<3x4xbf16>) -> tensor<5x4xbf16>
  %1 = nn.tensordot %ct, %rows axes = 1 {transpose_a} : (tensor<3x5xbf16>, tensor<3x4xbf16>) -> tensor<5x4xbf16>
  %2 = nn.add %0, %1 : (tensor<5x4xbf16>, tensor<5x4xbf16>) -> tensor<5x4xbf16>
  %3 = nn.cast %2 : tensor<5x4xbf16> -> tensor<5x4xf32>
  %4 = nn.cast %norm : tensor<3x4xf32> -> tensor<3x4xbf16>
  %5 = nn.reduce sum %4 dims = [0] : tensor<3x4xbf16> -> tensor<4xbf16>
  %6 = nn.cast %5 : tensor<4xbf16> -> tensor<4xf32>
  return %3, %6 : tensor<5x4xf32>, tensor<4xf32>
}

// What others read as bf16 is widened as it is; gradients of parameters that are no masters stay.
// CHECK-LABEL: func.func @shared
// CHECK: %[[P:.*]] = nn.matmul {{.*}} -> tensor<2x2xbf16>
// F32: %[[G:.*]] = nn.cast %[[P]] : tensor<2x2xbf16> -> tensor<2x2xf32>
// F32: return %[[G]], %{{.*}}, %[[P]] : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xbf16>
// BF16: return %[[P]], %{{.*}}, %[[P]] : tensor<2x2xbf16>, tensor<2x2xf32>, tensor<2x2xbf16>
func.func @shared(%x: tensor<2x2xbf16>, %f: tensor<2x2xf32>, %w: tensor<2x2xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>},
    %v: tensor<2x2xf32> {nn.param = #nn.param<"v", init = zeros>})
    -> (tensor<2x2xf32> {nn.grad = "w"}, tensor<2x2xf32> {nn.grad = "v"}, tensor<2x2xbf16> {nn.output = "p"}) {
  %0 = nn.matmul %x, %x : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xbf16>
  %1 = nn.cast %0 : tensor<2x2xbf16> -> tensor<2x2xf32>
  return %1, %f, %0 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xbf16>
}
