// Gradient accumulation written by hand: ignored targets, unequal in number per rank and micro-batch, leave
// sum of losses / sum of tokens; what the micro-batches yield is reduced once per step and divided once.
// 12 rows in 4 micro-batches of 3, which neither 2 nor 4 ranks divide.
// RUN: %python %support/accumulated_gradient.py %s --work %t '["data"=1]' '["data"=2]' '["data"=4]' '["data"=3], device_ids=[2, 0, 1]'

dist.mesh @mesh <MESH>

func.func @step(
    %x: tensor<12x5xf64> {nn.input = #nn.input<"x", unbatched>, dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
    %y: tensor<12xi64>   {nn.input = #nn.input<"y", unbatched>, dist.sharding = #dist.sharding<@mesh, [{"data"}]>},
    %w: tensor<5x3xf64>  {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f64> {nn.output = "loss"}, tensor<15xf64> {nn.output = "gradient"}) {
  %one = nn.constant dense<1.0> : tensor<f64>
  %ignored = nn.constant dense<-100> : tensor<i64>
  // Gradient, loss and count of tokens in one tensor, so that one reduction carries them.
  %sums = dist.accumulate(%x, %y) microbatches = 4 {
  ^bb0(%xm: tensor<3x5xf64>, %ym: tensor<3xi64>):
    %logits = nn.matmul %xm, %w : (tensor<3x5xf64>, tensor<5x3xf64>) -> tensor<3x3xf64>
    %loss, %lse = nn.cross_entropy sum %logits, %ym : (tensor<3x3xf64>, tensor<3xi64>) -> tensor<f64>
    %dlogits = nn.cross_entropy_grad %logits, %ym, %lse, %one : (tensor<3x3xf64>, tensor<3xi64>, tensor<f64>) -> tensor<3x3xf64>
    %dw = nn.matmul %xm, %dlogits {transpose_a} : (tensor<3x5xf64>, tensor<3x3xf64>) -> tensor<5x3xf64>
    %counts = nn.compare ne %ym, %ignored : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
    %tokens = nn.cast %counts : tensor<3xi1> -> tensor<3xf64>
    %count = nn.reduce sum %tokens dims = [0] {keep_dims} : tensor<3xf64> -> tensor<1xf64>
    %loss1 = nn.reshape %loss : tensor<f64> -> tensor<1xf64>
    %dw1 = nn.reshape %dw : tensor<5x3xf64> -> tensor<15xf64>
    %all = nn.concat %dw1, %loss1, %count dim = 0 : (tensor<15xf64>, tensor<1xf64>, tensor<1xf64>) -> tensor<17xf64>
    dist.yield %all : tensor<17xf64>
  } : (tensor<12x5xf64>, tensor<12xi64>) -> tensor<17xf64>
  %total = dist.reshard %sums <@mesh, [{}]> : tensor<17xf64>
  %count = nn.slice %total dim = 0 start = 16 : tensor<17xf64> -> tensor<1xf64>
  %means = nn.div %total, %count : (tensor<17xf64>, tensor<1xf64>) -> tensor<17xf64>
  %gradient = nn.slice %means dim = 0 start = 0 : tensor<17xf64> -> tensor<15xf64>
  %mean = nn.slice %means dim = 0 start = 15 : tensor<17xf64> -> tensor<1xf64>
  %loss = nn.reshape %mean : tensor<1xf64> -> tensor<f64>
  return %loss, %gradient : tensor<f64>, tensor<15xf64>
}
