// Inference normalises with the running statistics that training left in the file of parameters, and asks for them.
// RUN: %python %support/batch_norm_inference.py %s --work %t

func.func @model(
    %x: tensor<6x4xf64> {nn.input = "x"},
    %g: tensor<4xf64> {nn.param = #nn.param<"g", init = uniform(0.5, 1.5)>},
    %b: tensor<4xf64> {nn.param = #nn.param<"b", init = uniform(-1.0, 1.0)>},
    %m: tensor<4xf64> {nn.buffer = #nn.buffer<"bn.running_mean", init = 0.25>},
    %v: tensor<4xf64> {nn.buffer = #nn.buffer<"bn.running_var", init = 1.5>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "y"}, tensor<4xf64> {nn.updates = "bn.running_mean"},
        tensor<4xf64> {nn.updates = "bn.running_var"}) {
  %0:3 = nn.batch_norm %x, %g, %b, %m, %v momentum = 0.1 eps = 1.0e-3 : tensor<6x4xf64>, tensor<4xf64>
  %1 = nn.mul %0#0, %0#0 : (tensor<6x4xf64>, tensor<6x4xf64>) -> tensor<6x4xf64>
  %loss = nn.reduce mean %1 dims = [0, 1] : tensor<6x4xf64> -> tensor<f64>
  return %loss, %0#0, %0#1, %0#2 : tensor<f64>, tensor<6x4xf64>, tensor<4xf64>, tensor<4xf64>
}
