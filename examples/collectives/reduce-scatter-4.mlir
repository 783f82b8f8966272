// Reduce-scatter: the sum over the 4 ranks, of which each keeps its part.
dist.mesh @mesh <["x"=4]>

func.func @reduce_scatter()
    -> (tensor<8xf32> {nn.output = "before"}, tensor<2xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32>
  %before = nn.add %count, %rank : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %after = dist.reduce_scatter {"x"} sum dim = 0 %before : tensor<8xf32> -> tensor<2xf32>
  return %before, %after : tensor<8xf32>, tensor<2xf32>
}
