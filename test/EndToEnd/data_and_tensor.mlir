// Hand-annotated tensor parallelism with data parallelism, as real processes: non-square meshes, axes of size 1,
// permuted devices, sizes that nothing divides (hidden 11, classes 5, batch 10, 23 rows), ignored labels, clipping.
// RUN: %python %support/plans.py %s --rows 23 --work %t/adam --shoalc "--optimizer adamw --lr 0.01 --weight-decay 0.1 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=2, "tensor"=2]' '["data"=2, "tensor"=3]' '["data"=3, "tensor"=1]' '["data"=1, "tensor"=4]' \
// RUN:   '["tensor"=2, "data"=2]' '["data"=2, "tensor"=3], device_ids=[4, 1, 5, 0, 3, 2]' \
// RUN:   '["data"=2, "tensor"=3] --zero 1' '["data"=3, "tensor"=2] --zero 3'
// RUN: %python %support/plans.py %s --rows 23 --work %t/sgd --shoalc "--optimizer sgd --lr 0.1 --momentum 0.9 --bucket-mb 0.0001" \
// RUN:   '["data"=1, "tensor"=1]' '["data"=4, "tensor"=2]' '["data"=3, "tensor"=2], device_ids=[5, 0, 3, 1, 4, 2]'

dist.mesh @mesh <MESH>

func.func @mlp(
    %x:  tensor<10x6xf64> {nn.input = "x"},
    %y:  tensor<10xi64>   {nn.input = "y"},
    %w1: tensor<6x11xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %b1: tensor<11xf64>   {nn.param = #nn.param<"b1", init = uniform(-0.1, 0.1)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %w2: tensor<11x7xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %b2: tensor<7xf64>    {nn.param = #nn.param<"b2", init = uniform(-0.1, 0.1)>},
    %w3: tensor<7x5xf64>  {nn.param = #nn.param<"w3", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f64> {nn.loss}, tensor<10x5xf64> {nn.output = "logits"}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf64>, tensor<6x11xf64>) -> tensor<10x11xf64>
  %1 = nn.add %0, %b1 : (tensor<10x11xf64>, tensor<11xf64>) -> tensor<10x11xf64>
  %2 = nn.tanh %1 : tensor<10x11xf64>
  // Row-parallel: the bias is added once, after the partial sums are.
  %3 = nn.matmul %2, %w2 : (tensor<10x11xf64>, tensor<11x7xf64>) -> tensor<10x7xf64>
  %4 = nn.add %3, %b2 : (tensor<10x7xf64>, tensor<7xf64>) -> tensor<10x7xf64>
  %5 = nn.relu %4 : tensor<10x7xf64>
  // The classes are sharded: the softmax runs over padding that must never win.
  %6 = nn.matmul %5, %w3 : (tensor<10x7xf64>, tensor<7x5xf64>) -> tensor<10x5xf64>
  %loss, %lse = nn.cross_entropy mean %6, %y : (tensor<10x5xf64>, tensor<10xi64>) -> tensor<f64>
  return %loss, %6 : tensor<f64>, tensor<10x5xf64>
}
