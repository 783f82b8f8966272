// All-reduce: every rank holds the sum over the 4 ranks.
dist.mesh @mesh <["x"=4]>

func.func @all_reduce()
    -> (tensor<8xf32> {nn.output = "before"}, tensor<8xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32>
  %before = nn.add %count, %rank : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %after = dist.all_reduce {"x"} sum %before : tensor<8xf32>
  return %before, %after : tensor<8xf32>, tensor<8xf32>
}
