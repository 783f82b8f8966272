// Gradients in bf16, whose norm clips them: the update and the norm read them in f32, by one cast. ZeRO shards them as any.
// RUN: shoalc %s --mesh data=2 --zero 1 --dtype bf16 --grad-dtype bf16 --optimizer adamw --clip-grad-norm 1 --emit local -o - 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not="stays whole"
// RUN: shoalc %s --mesh data=2 --zero 3 --dtype bf16 --grad-dtype bf16 --optimizer adamw --grad-norm --verify-plan 2>&1 \
// RUN:   | FileCheck %s --check-prefix=EQUAL --implicit-check-not="stays whole"
// EQUAL: the plan equals one device

// CHECK: dist.reduce_scatter {"data"} sum dim = 0 %{{.*}} : tensor<88xbf16> -> tensor<44xbf16>
// CHECK: nn.adam_update {{.*}} : tensor<44xf32>
func.func @step(%x: tensor<8x8xf32> {nn.input = "x"}, %y: tensor<8xi64> {nn.input = "y"},
    %w: tensor<8x11xf32> {nn.param = #nn.param<"w", init = kaiming_uniform>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w {nn.layer = "h.0"} : (tensor<8x8xf32>, tensor<8x11xf32>) -> tensor<8x11xf32>
  %loss, %lse = nn.cross_entropy mean %0, %y : (tensor<8x11xf32>, tensor<8xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}
