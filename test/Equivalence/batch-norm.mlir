// Statistics of batch norm are those of the whole batch and of each feature under every plan: features split over
// tensor axes that do not divide them, rows that do not divide, short last batches (every second step of the
// comparison), a second norm over positions too. Running statistics are updated alike on all ranks.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=sgd momentum=0.9 nesterov=1 clip-grad-norm=0.5" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=4" -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=1, "tensor"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "tensor"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "tensor"=3
// RUN: %{check}
// REDEFINE: %{mesh} = "tensor"=2, "data"=4
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=8, "tensor"=1
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @mlp(
    %x:  tensor<10x6xf64> {nn.input = "x"},
    %y:  tensor<10xi64> {nn.input = "y"},
    %w1: tensor<6x21xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %g1: tensor<21xf64> {nn.param = #nn.param<"g1", init = ones>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %b1: tensor<21xf64> {nn.param = #nn.param<"b1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %m1: tensor<21xf64> {nn.buffer = #nn.buffer<"m1", init = 0.5>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %v1: tensor<21xf64> {nn.buffer = #nn.buffer<"v1", init = 1.0>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
    %g2: tensor<7xf64> {nn.param = #nn.param<"g2", init = ones>},
    %b2: tensor<7xf64> {nn.param = #nn.param<"b2", init = zeros>},
    %m2: tensor<7xf64> {nn.buffer = #nn.buffer<"m2", init = 0.0>},
    %v2: tensor<7xf64> {nn.buffer = #nn.buffer<"v2", init = 2.0>},
    %w2: tensor<21x4xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}, tensor<21xf64> {nn.updates = "m1"}, tensor<21xf64> {nn.updates = "v1"},
        tensor<7xf64> {nn.updates = "m2"}, tensor<7xf64> {nn.updates = "v2"}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf64>, tensor<6x21xf64>) -> tensor<10x21xf64>
  %1:3 = nn.batch_norm %0, %g1, %b1, %m1, %v1 momentum = 0.1 eps = 1.0e-5 : tensor<10x21xf64>, tensor<21xf64>
  %2 = nn.gelu erf %1#0 : tensor<10x21xf64>
  %3 = nn.reshape %2 : tensor<10x21xf64> -> tensor<10x7x3xf64>
  %4:3 = nn.batch_norm %3, %g2, %b2, %m2, %v2 momentum = 0.3 eps = 1.0e-3 : tensor<10x7x3xf64>, tensor<7xf64>
  %5 = nn.reshape %4#0 : tensor<10x7x3xf64> -> tensor<10x21xf64>
  %6 = nn.silu %5 : tensor<10x21xf64>
  %7 = nn.matmul %6, %w2 : (tensor<10x21xf64>, tensor<21x4xf64>) -> tensor<10x4xf64>
  %loss, %lse = nn.cross_entropy mean %7, %y : (tensor<10x4xf64>, tensor<10xi64>) -> tensor<f64>
  return %loss, %1#1, %1#2, %4#1, %4#2 : tensor<f64>, tensor<21xf64>, tensor<21xf64>, tensor<7xf64>, tensor<7xf64>
}
