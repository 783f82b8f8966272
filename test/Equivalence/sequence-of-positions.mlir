// A position table that joins the stream is sharded by sequence in training; evaluation, which adopts that, finds the same stream.
// RUN: shoalc %s --mesh tensor=2 --tensor-parallel --sequence-parallel --verify-plan 2>&1 | FileCheck %s
// CHECK: the plan equals one device, --mode train
// CHECK: the plan equals one device, --mode eval
func.func @m(%x: tensor<4x6x8xf32> {nn.input = "x"}, %p: tensor<6x8xf32> {nn.param = #nn.param<"p", init = zeros>}, %w: tensor<8x12xf32> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>}, %v: tensor<12x8xf32> {nn.param = #nn.param<"v", init = normal(0.0, 0.5)>}) -> (tensor<f32> {nn.loss}) {
  %y = nn.add %x, %p : (tensor<4x6x8xf32>, tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %1 = nn.tensordot %y, %w axes = 1 : (tensor<4x6x8xf32>, tensor<8x12xf32>) -> tensor<4x6x12xf32>
  %2 = nn.relu %1 : tensor<4x6x12xf32>
  %3 = nn.tensordot %2, %v axes = 1 : (tensor<4x6x12xf32>, tensor<12x8xf32>) -> tensor<4x6x8xf32>
  %4 = nn.add %y, %3 : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %loss = nn.reduce sum %4 dims = [0, 1, 2] : tensor<4x6x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
