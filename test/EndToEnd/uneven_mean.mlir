// A mean over a dimension that is sharded and does not divide is divided by the real size, in the loss and in what a parameter
// adds to it, as real processes: 5 columns over 2 tensor ranks, 10 rows of 23 over 2 and 3 ranks, and 35 elements in buckets of ZeRO.
// RUN: %python %support/plans.py %s --rows 23 --work %t --shoalc "--optimizer adamw --lr 0.01 --clip-grad-norm 0.05 --grad-norm" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=3, "tensor"=2]' '["data"=2, "tensor"=2] --zero 1' '["data"=3, "tensor"=1] --zero 2' \
// RUN:   '["data"=2, "tensor"=2] --zero 3' '["data"=2, "tensor"=1] --zero 3 --microbatches 3'

dist.mesh @mesh <MESH>

func.func @means(
    %x: tensor<10x7xf64> {nn.input = "x"},
    %w: tensor<7x5xf64>  {nn.param = #nn.param<"w", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f64> {nn.loss}, tensor<10x5xf64> {nn.output = "h"}) {
  %h = nn.matmul %x, %w : (tensor<10x7xf64>, tensor<7x5xf64>) -> tensor<10x5xf64>
  %row = nn.reduce mean %h dims = [1] : tensor<10x5xf64> -> tensor<10xf64>
  %square = nn.mul %row, %row : (tensor<10xf64>, tensor<10xf64>) -> tensor<10xf64>
  %data = nn.reduce mean %square dims = [0] : tensor<10xf64> -> tensor<f64>
  %ww = nn.mul %w, %w : (tensor<7x5xf64>, tensor<7x5xf64>) -> tensor<7x5xf64>
  %weight = nn.reduce mean %ww dims = [0, 1] : tensor<7x5xf64> -> tensor<f64>
  %loss = nn.add %data, %weight : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %loss, %h : tensor<f64>, tensor<10x5xf64>
}
