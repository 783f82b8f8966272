// Running statistics of a middle stage are those of one device. The batch is one micro-batch, for its mean is that
// of all rows; where the file says no stages, no cut is within what belongs together.
// DEFINE: %{plans} = --rows 23 --work %t --steps 6 --shoalc "--optimizer adamw --lr 0.01 --grad-norm" \
// DEFINE:   '["pipe"=1]' '["pipe"=3]' '["pipe"=3, "data"=2] --pipeline-schedule zb-h2 --zero 1'
// RUN: %python %support/plans.py %s %{plans}
// RUN: sed 's/{pipe.stage = . : i64}//' %s > %t.cut.mlir
// RUN: %python %support/plans.py %t.cut.mlir %{plans}
// RUN: sed 's/<MESH>/<["pipe"=3]>/' %s > %t.mlir
// RUN: not shoalc %t.mlir -o %t.exe --microbatches 2 2>&1 | FileCheck %s --check-prefix=PARTS
// PARTS: error: 'nn.sub' op needs a sum over all rows of the batch beside its rows, as the statistics of batch_norm are

dist.mesh @mesh <MESH>

func.func @normalised(
    %x: tensor<6x5xf64> {nn.input = "x"},
    %y: tensor<6xi64> {nn.input = "y"},
    %w: tensor<5x5xf64> {nn.param = #nn.param<"w", init = normal(0.0, 0.5)>},
    %g: tensor<5xf64> {nn.param = #nn.param<"g", init = normal(0.0, 0.5)>},
    %b: tensor<5xf64> {nn.param = #nn.param<"b", init = normal(0.0, 0.5)>},
    %m: tensor<5xf64> {nn.buffer = #nn.buffer<"mean", init = 0.0>},
    %v: tensor<5xf64> {nn.buffer = #nn.buffer<"var", init = 1.0>},
    %h: tensor<5x4xf64> {nn.param = #nn.param<"h", init = normal(0.0, 0.5)>})
    -> (tensor<f64> {nn.loss}, tensor<6x4xf64> {nn.output = "logits"},
        tensor<5xf64> {nn.updates = "mean"}, tensor<5xf64> {nn.updates = "var"}) {
  %0 = nn.matmul %x, %w {pipe.stage = 0 : i64} : (tensor<6x5xf64>, tensor<5x5xf64>) -> tensor<6x5xf64>
  %n, %m1, %v1 = nn.batch_norm %0, %g, %b, %m, %v momentum = 0.1 eps = 1.0e-5 {pipe.stage = 1 : i64}
      : tensor<6x5xf64>, tensor<5xf64>
  %r = nn.relu %n : tensor<6x5xf64>
  %9 = nn.matmul %r, %h {pipe.stage = 2 : i64} : (tensor<6x5xf64>, tensor<5x4xf64>) -> tensor<6x4xf64>
  %loss, %lse = nn.cross_entropy mean %9, %y : (tensor<6x4xf64>, tensor<6xi64>) -> tensor<f64>
  return %loss, %9, %m1, %v1 : tensor<f64>, tensor<6x4xf64>, tensor<5xf64>, tensor<5xf64>
}
