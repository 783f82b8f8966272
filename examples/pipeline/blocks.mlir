// 8 residual perceptron blocks of width 128, as benchmarks/generate_blocks.py writes them.
func.func @blocks(
    %x: tensor<32x128xf32> {nn.input = "x"},
    %y: tensor<32x128xf32> {nn.input = "y"},
    %u0: tensor<128x512xf32> {nn.param = #nn.param<"blocks.0.w1", init = kaiming_uniform>},
    %d0: tensor<512x128xf32> {nn.param = #nn.param<"blocks.0.w2", init = normal(0.0, 0.02)>},
    %u1: tensor<128x512xf32> {nn.param = #nn.param<"blocks.1.w1", init = kaiming_uniform>},
    %d1: tensor<512x128xf32> {nn.param = #nn.param<"blocks.1.w2", init = normal(0.0, 0.02)>},
    %u2: tensor<128x512xf32> {nn.param = #nn.param<"blocks.2.w1", init = kaiming_uniform>},
    %d2: tensor<512x128xf32> {nn.param = #nn.param<"blocks.2.w2", init = normal(0.0, 0.02)>},
    %u3: tensor<128x512xf32> {nn.param = #nn.param<"blocks.3.w1", init = kaiming_uniform>},
    %d3: tensor<512x128xf32> {nn.param = #nn.param<"blocks.3.w2", init = normal(0.0, 0.02)>},
    %u4: tensor<128x512xf32> {nn.param = #nn.param<"blocks.4.w1", init = kaiming_uniform>},
    %d4: tensor<512x128xf32> {nn.param = #nn.param<"blocks.4.w2", init = normal(0.0, 0.02)>},
    %u5: tensor<128x512xf32> {nn.param = #nn.param<"blocks.5.w1", init = kaiming_uniform>},
    %d5: tensor<512x128xf32> {nn.param = #nn.param<"blocks.5.w2", init = normal(0.0, 0.02)>},
    %u6: tensor<128x512xf32> {nn.param = #nn.param<"blocks.6.w1", init = kaiming_uniform>},
    %d6: tensor<512x128xf32> {nn.param = #nn.param<"blocks.6.w2", init = normal(0.0, 0.02)>},
    %u7: tensor<128x512xf32> {nn.param = #nn.param<"blocks.7.w1", init = kaiming_uniform>},
    %d7: tensor<512x128xf32> {nn.param = #nn.param<"blocks.7.w2", init = normal(0.0, 0.02)>})
    -> (tensor<f32> {nn.loss}) {
  %a0 = nn.matmul %x, %u0 {nn.layer = "blocks.0"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r0 = nn.relu %a0 {nn.layer = "blocks.0"} : tensor<32x512xf32>
  %b0 = nn.matmul %r0, %d0 {nn.layer = "blocks.0"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x0 = nn.add %x, %b0 {nn.layer = "blocks.0"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a1 = nn.matmul %x0, %u1 {nn.layer = "blocks.1"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r1 = nn.relu %a1 {nn.layer = "blocks.1"} : tensor<32x512xf32>
  %b1 = nn.matmul %r1, %d1 {nn.layer = "blocks.1"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x1 = nn.add %x0, %b1 {nn.layer = "blocks.1"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a2 = nn.matmul %x1, %u2 {nn.layer = "blocks.2"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r2 = nn.relu %a2 {nn.layer = "blocks.2"} : tensor<32x512xf32>
  %b2 = nn.matmul %r2, %d2 {nn.layer = "blocks.2"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x2 = nn.add %x1, %b2 {nn.layer = "blocks.2"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a3 = nn.matmul %x2, %u3 {nn.layer = "blocks.3"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r3 = nn.relu %a3 {nn.layer = "blocks.3"} : tensor<32x512xf32>
  %b3 = nn.matmul %r3, %d3 {nn.layer = "blocks.3"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x3 = nn.add %x2, %b3 {nn.layer = "blocks.3"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a4 = nn.matmul %x3, %u4 {nn.layer = "blocks.4"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r4 = nn.relu %a4 {nn.layer = "blocks.4"} : tensor<32x512xf32>
  %b4 = nn.matmul %r4, %d4 {nn.layer = "blocks.4"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x4 = nn.add %x3, %b4 {nn.layer = "blocks.4"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a5 = nn.matmul %x4, %u5 {nn.layer = "blocks.5"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r5 = nn.relu %a5 {nn.layer = "blocks.5"} : tensor<32x512xf32>
  %b5 = nn.matmul %r5, %d5 {nn.layer = "blocks.5"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x5 = nn.add %x4, %b5 {nn.layer = "blocks.5"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a6 = nn.matmul %x5, %u6 {nn.layer = "blocks.6"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r6 = nn.relu %a6 {nn.layer = "blocks.6"} : tensor<32x512xf32>
  %b6 = nn.matmul %r6, %d6 {nn.layer = "blocks.6"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x6 = nn.add %x5, %b6 {nn.layer = "blocks.6"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %a7 = nn.matmul %x6, %u7 {nn.layer = "blocks.7"} : (tensor<32x128xf32>, tensor<128x512xf32>) -> tensor<32x512xf32>
  %r7 = nn.relu %a7 {nn.layer = "blocks.7"} : tensor<32x512xf32>
  %b7 = nn.matmul %r7, %d7 {nn.layer = "blocks.7"} : (tensor<32x512xf32>, tensor<512x128xf32>) -> tensor<32x128xf32>
  %x7 = nn.add %x6, %b7 {nn.layer = "blocks.7"} : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
  %loss = nn.mse_loss mean %x7, %y : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
