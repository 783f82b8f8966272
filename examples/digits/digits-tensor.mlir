// digits.mlir with three lines of sharding: the hidden dimension lies over mesh axis "tensor", so each rank has a part of both
// layers. --mesh brings the mesh that the annotations name.
func.func @digits(
    %x:  tensor<32x64xf32>  {nn.input = "x"},
    %y:  tensor<32xi64>     {nn.input = "y"},
    %w1: tensor<64x128xf32> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %b1: tensor<128xf32>    {nn.param = #nn.param<"b1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %w2: tensor<128x10xf32> {nn.param = #nn.param<"w2", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %b2: tensor<10xf32>     {nn.param = #nn.param<"b2", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<32x10xf32> {nn.output = "logits"}) {
  %0 = nn.matmul %x, %w1 : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
  %1 = nn.add %0, %b1 : (tensor<32x128xf32>, tensor<128xf32>) -> tensor<32x128xf32>
  %2 = nn.relu %1 : tensor<32x128xf32>
  %3 = nn.matmul %2, %w2 : (tensor<32x128xf32>, tensor<128x10xf32>) -> tensor<32x10xf32>
  %4 = nn.add %3, %b2 : (tensor<32x10xf32>, tensor<10xf32>) -> tensor<32x10xf32>
  %loss, %lse = nn.cross_entropy mean %4, %y : (tensor<32x10xf32>, tensor<32xi64>) -> tensor<f32>
  return %loss, %4 : tensor<f32>, tensor<32x10xf32>
}
