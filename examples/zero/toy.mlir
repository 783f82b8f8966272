// The toy model of many introductions to data parallelism: two layers with a ReLU between them, 13,834 parameters.
func.func @toy(
    %x:  tensor<32x16xf32>  {nn.input = "x"},
    %y:  tensor<32x10xf32>  {nn.input = "y"},
    %w1: tensor<16x512xf32> {nn.param = #nn.param<"w1", init = kaiming_uniform>},
    %b1: tensor<512xf32>    {nn.param = #nn.param<"b1", init = zeros>},
    %w2: tensor<512x10xf32> {nn.param = #nn.param<"w2", init = kaiming_uniform>},
    %b2: tensor<10xf32>     {nn.param = #nn.param<"b2", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 {nn.layer = "w1"} : (tensor<32x16xf32>, tensor<16x512xf32>) -> tensor<32x512xf32>
  %1 = nn.add %0, %b1 {nn.layer = "w1"} : (tensor<32x512xf32>, tensor<512xf32>) -> tensor<32x512xf32>
  %2 = nn.relu %1 {nn.layer = "w1"} : tensor<32x512xf32>
  %3 = nn.matmul %2, %w2 {nn.layer = "w2"} : (tensor<32x512xf32>, tensor<512x10xf32>) -> tensor<32x10xf32>
  %4 = nn.add %3, %b2 {nn.layer = "w2"} : (tensor<32x10xf32>, tensor<10xf32>) -> tensor<32x10xf32>
  %loss = nn.mse_loss mean %4, %y : (tensor<32x10xf32>, tensor<32x10xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
