// Broadcast: rank 1 is the root, afterwards all 3 ranks hold what it held.
dist.mesh @mesh <["x"=3]>

func.func @broadcast()
    -> (tensor<4xf32> {nn.output = "before"}, tensor<4xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %before = nn.add %count, %rank : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %after = dist.broadcast {"x"} root = 1 %before : tensor<4xf32> -> tensor<4xf32>
  return %before, %after : tensor<4xf32>, tensor<4xf32>
}
