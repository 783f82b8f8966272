// What a step makes of parameters alone, under ZeRO-3: a weight that is divided by its norm, one that is normalized over the
// dimension that a hand shards, a penalty, and what is returned. It is made again for each pass, or it would be kept in the
// weight's stead, which dist-verify-local refuses; and it does what one device does.
// DEFINE: %{mesh} =
// DEFINE: %{plan} =
// DEFINE: %{options} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data zero=3 optimizer=adamw %{plan}" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=tensor %{options}" \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir --dist-expand-collectives --canonicalize --cse \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// REDEFINE: %{mesh} = "data"=2, "tensor"=1
// RUN: %{check}
// REDEFINE: %{options} = overlap=false
// RUN: %{check}
// REDEFINE: %{plan} = microbatches=3
// RUN: %{check}
// REDEFINE: %{options} =
// REDEFINE: %{mesh} = "data"=2, "tensor"=2
// RUN: %{check}
// REDEFINE: %{plan} =
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "tensor"=4
// REDEFINE: %{plan} = grad-norm=true
// RUN: %{check}

dist.mesh @mesh <[MESH]>
func.func @mlp(
    %x:  tensor<12x7xf64> {nn.input = "x"},
    %y:  tensor<12xi64> {nn.input = "y"},
    %w1: tensor<7x6xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
    %w2: tensor<6x5xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f64> {nn.loss}, tensor<5x6xf64> {nn.output = "t"}) {
  %s = nn.softmax %w1 dim = 1 : tensor<7x6xf64>
  %0 = nn.matmul %x, %s {nn.layer = "h.0"} : (tensor<12x7xf64>, tensor<7x6xf64>) -> tensor<12x6xf64>
  %1 = nn.relu %0 {nn.layer = "h.0"} : tensor<12x6xf64>
  %q = nn.mul %w2, %w2 : (tensor<6x5xf64>, tensor<6x5xf64>) -> tensor<6x5xf64>
  %n = nn.reduce sum %q dims = [0, 1] : tensor<6x5xf64> -> tensor<f64>
  %r = nn.sqrt %n : tensor<f64>
  %v = nn.div %w2, %r : (tensor<6x5xf64>, tensor<f64>) -> tensor<6x5xf64>
  %2 = nn.matmul %1, %v {nn.layer = "h.1"} : (tensor<12x6xf64>, tensor<6x5xf64>) -> tensor<12x5xf64>
  %c = nn.matmul %s, %v : (tensor<7x6xf64>, tensor<6x5xf64>) -> tensor<7x5xf64>
  %3 = nn.matmul %x, %c : (tensor<12x7xf64>, tensor<7x5xf64>) -> tensor<12x5xf64>
  %4 = nn.add %2, %3 : (tensor<12x5xf64>, tensor<12x5xf64>) -> tensor<12x5xf64>
  %loss, %lse = nn.cross_entropy mean %4, %y : (tensor<12x5xf64>, tensor<12xi64>) -> tensor<f64>
  %e = nn.exp %w2 : tensor<6x5xf64>
  %p = nn.reduce sum %e dims = [0, 1] : tensor<6x5xf64> -> tensor<f64>
  %all = nn.add %loss, %p : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %t = nn.transpose %w2 [1, 0] : tensor<6x5xf64> -> tensor<5x6xf64>
  return %all, %t : tensor<f64>, tensor<5x6xf64>
}
