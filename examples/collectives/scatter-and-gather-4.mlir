// Scatter and gather: rank 0 hands a part of what it holds to each of the 4 ranks, each negates its part, and rank 1
// collects the parts. On ranks that are not the root of a gather the result is zeros.
dist.mesh @mesh <["x"=4]>

func.func @scatter_and_gather()
    -> (tensor<8xf32> {nn.output = "before"}, tensor<2xf32> {nn.output = "part"}, tensor<8xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<8xf32>
  %before = nn.add %count, %rank : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %part = dist.scatter {"x"} root = 0 %before : tensor<8xf32> -> tensor<2xf32>
  %negated = nn.neg %part : tensor<2xf32>
  %after = dist.gather {"x"} root = 1 %negated : tensor<2xf32> -> tensor<8xf32>
  return %before, %part, %after : tensor<8xf32>, tensor<2xf32>, tensor<8xf32>
}
