// All-to-all: element k of rank r becomes element r of rank k, the transpose of what the 4 ranks hold. As a change of
// layout: each rank has one column of a 4 x 4 matrix before, and one row after.
dist.mesh @mesh <["x"=4]>

func.func @all_to_all()
    -> (tensor<4xf32> {nn.output = "before"}, tensor<4xf32> {nn.output = "after"}) {
  %ten = dist.axis_index {"x"} * 10 : tensor<i64>
  %rank = nn.cast %ten : tensor<i64> -> tensor<f32>
  %count = nn.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %before = nn.add %count, %rank : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %column = nn.reshape %before : tensor<4xf32> -> tensor<4x1xf32>
  %row = dist.all_to_all {"x"} split = 0 concat = 1 %column : tensor<4x1xf32> -> tensor<1x4xf32>
  %after = nn.reshape %row : tensor<1x4xf32> -> tensor<4xf32>
  return %before, %after : tensor<4xf32>, tensor<4xf32>
}
