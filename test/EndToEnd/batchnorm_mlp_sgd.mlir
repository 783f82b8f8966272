// Batch norm over the whole batch and its running statistics are what PyTorch computes in float64, on 1
// to 4 ranks: 30 rows divide by 2 and 3, not by 4.
// RUN: %python %support/golden.py %s %S/golden/batchnorm_mlp_sgd.json --work %t

func.func @mlp(
    %x:  tensor<30x9xf64> {nn.input = "x"},
    %y:  tensor<30xi64> {nn.input = "y"},
    %w1: tensor<9x14xf64> {nn.param = #nn.param<"w1", init = zeros>},
    %g:  tensor<14xf64> {nn.param = #nn.param<"g", init = ones>},
    %b:  tensor<14xf64> {nn.param = #nn.param<"b", init = zeros>},
    %w2: tensor<14x5xf64> {nn.param = #nn.param<"w2", init = zeros>},
    %m:  tensor<14xf64> {nn.buffer = #nn.buffer<"bn.running_mean", init = 0.0>},
    %v:  tensor<14xf64> {nn.buffer = #nn.buffer<"bn.running_var", init = 1.0>})
    -> (tensor<f64> {nn.loss}, tensor<14xf64> {nn.updates = "bn.running_mean"},
        tensor<14xf64> {nn.updates = "bn.running_var"}) {
  %0 = nn.matmul %x, %w1 : (tensor<30x9xf64>, tensor<9x14xf64>) -> tensor<30x14xf64>
  %1:3 = nn.batch_norm %0, %g, %b, %m, %v momentum = 0.1 eps = 1.0e-5 : tensor<30x14xf64>, tensor<14xf64>
  %2 = nn.relu %1#0 : tensor<30x14xf64>
  %3 = nn.matmul %2, %w2 : (tensor<30x14xf64>, tensor<14x5xf64>) -> tensor<30x5xf64>
  %loss, %lse = nn.cross_entropy mean %3, %y : (tensor<30x5xf64>, tensor<30xi64>) -> tensor<f64>
  return %loss, %1#1, %1#2 : tensor<f64>, tensor<14xf64>, tensor<14xf64>
}
