dist.mesh @mesh <["data"=2]>
func.func @local(%x: tensor<4xf32> {nn.input = "x"},
    %m: tensor<4xf32> {nn.state = #nn.state<"w.m", of = "w", init = 0.0>, dist.memory = "host"},
    %w: tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4xf32> {nn.updates = "w.m"}) {
  %0 = dist.all_reduce {"data"} sum %x {reason = "by hand"} : tensor<4xf32>
  %1 = nn.add %m, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
