// A table that is read by its rows and multiplied as the head, and heads as dimensions, as real processes: the vocabulary of 11
// divides by nothing, 6 heads in 2 groups, 2 and 4 tensor ranks, rows of the batch that do not divide, ignored labels.
// RUN: %python %support/plans.py %s --rows 13 --work %t/adam --shoalc "--optimizer adamw --lr 0.01 --weight-decay 0.1 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=2, "tensor"=2]' '["data"=1, "tensor"=4]' '["data"=3, "tensor"=2], device_ids=[5, 0, 3, 1, 4, 2]' \
// RUN:   '["data"=2, "tensor"=2] --zero 3' '["data"=3, "tensor"=1] --zero 2' '["data"=3, "tensor"=2], device_ids=[5, 0, 3, 1, 4, 2] --zero 1'
// RUN: %python %support/plans.py %s --rows 13 --work %t/sgd --shoalc "--optimizer sgd --lr 0.1 --momentum 0.9 --bucket-mb 0.0001" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=2, "tensor"=3]' '["data"=4, "tensor"=1]'

dist.mesh @mesh <MESH>

func.func @tied(
    %ids: tensor<5x4xi64> {nn.input = "ids"},
    %y:   tensor<5x4xi64> {nn.input = "y"},
    %t:   tensor<11x6xf64> {nn.param = #nn.param<"t", init = uniform(-0.5, 0.5)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %w:   tensor<6x2x3x4xf64> {nn.param = #nn.param<"w", init = kaiming_uniform, file = [6, 24]>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}, {}, {}]>},
    %b:   tensor<2x3x4xf64> {nn.param = #nn.param<"b", init = uniform(-0.1, 0.1), file = [24]>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}, {}]>},
    %o:   tensor<6x2x3x4xf64> {nn.param = #nn.param<"o", init = kaiming_uniform, file = [6, 24]>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}, {}, {}]>})
    -> (tensor<f64> {nn.loss}, tensor<5x4x11xf64> {nn.output = "logits"}) {
  %0 = nn.embedding %t, %ids : (tensor<11x6xf64>, tensor<5x4xi64>) -> tensor<5x4x6xf64>
  %1 = nn.tensordot %0, %w axes = 1 : (tensor<5x4x6xf64>, tensor<6x2x3x4xf64>) -> tensor<5x4x2x3x4xf64>
  %2 = nn.add %1, %b : (tensor<5x4x2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<5x4x2x3x4xf64>
  %3 = nn.sigmoid %2 : tensor<5x4x2x3x4xf64>
  %4 = nn.tensordot %3, %o axes = 3 {transpose_b} : (tensor<5x4x2x3x4xf64>, tensor<6x2x3x4xf64>) -> tensor<5x4x6xf64>
  %5 = nn.add %0, %4 : (tensor<5x4x6xf64>, tensor<5x4x6xf64>) -> tensor<5x4x6xf64>
  %6 = nn.tensordot %5, %t axes = 1 {transpose_b} : (tensor<5x4x6xf64>, tensor<11x6xf64>) -> tensor<5x4x11xf64>
  %loss, %lse = nn.cross_entropy mean %6, %y : (tensor<5x4x11xf64>, tensor<5x4xi64>) -> tensor<f64>
  return %loss, %6 : tensor<f64>, tensor<5x4x11xf64>
}
