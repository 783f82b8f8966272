// All-gather: every rank holds the parts of all 3 ranks, in rank order.
dist.mesh @mesh <["x"=3]>

func.func @all_gather()
    -> (tensor<2xf32> {nn.output = "before"}, tensor<6xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %before = nn.add %count, %rank : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %after = dist.all_gather {"x"} dim = 0 %before : tensor<2xf32> -> tensor<6xf32>
  return %before, %after : tensor<2xf32>, tensor<6xf32>
}
