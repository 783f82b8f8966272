// Norms and rotary embedding under every split: the sequence (rows of norms, positions of rope with the shard's offset, also
// where 7 positions do not divide), features (norms become sums over devices, divided by the whole size: 10 elements), and
// heads, which rope passes through. Whole training steps, with gradients of the norms' parameters summed over what is split.
// DEFINE: %{mesh} =
// DEFINE: %{x} =
// DEFINE: %{check} = sed -e 's/MESH/%{mesh}/' -e 's/LIES/%{x}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="model-axes=a,b optimizer=sgd" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="model-axes=a,b" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan="reference=%t.global.mlir steps=2" -o %t.local.mlir

// The sequence.
// REDEFINE: %{x} = [{}, {"a", "b"}, {}]
// REDEFINE: %{mesh} = "a"=2, "b"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "a"=3, "b"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "a"=5, "b"=1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=SEQUENCE < %t.local.mlir
// REDEFINE: %{mesh} = "b"=2, "a"=4
// RUN: %{check}

// Features.
// REDEFINE: %{x} = [{}, {}, {"a"}]
// REDEFINE: %{mesh} = "a"=2, "b"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "a"=3, "b"=1
// RUN: %{check}

// Both.
// REDEFINE: %{x} = [{"b"}, {"a"}, {}]
// REDEFINE: %{mesh} = "a"=2, "b"=2
// RUN: %{check}
// REDEFINE: %{x} = [{}, {"a"}, {"b"}]
// REDEFINE: %{mesh} = "a"=3, "b"=2
// RUN: %{check}

// Positions of a shard start at its offset, and nothing of the sequence is gathered before the loss.
// SEQUENCE: %[[OFFSET:.*]] = dist.axis_index {"a"{{.*}}} {{.*}}
// SEQUENCE-NOT: dist.all_gather
// SEQUENCE: nn.rope_table

dist.mesh @mesh <[MESH]>
func.func @block(
    %x: tensor<2x7x10xf64> {nn.input = #nn.input<"x", unbatched>, dist.sharding = #dist.sharding<@mesh, LIES>},
    %g1: tensor<10xf64> {nn.param = #nn.param<"g1", init = uniform(0.5, 1.5)>},
    %b1: tensor<10xf64> {nn.param = #nn.param<"b1", init = normal(0.0, 0.5)>},
    %w: tensor<10x12xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
    %g2: tensor<4xf64> {nn.param = #nn.param<"g2", init = uniform(0.5, 1.5)>}) -> (tensor<f64> {nn.loss}) {
  %y, %mean, %rstd = nn.layer_norm %x, %g1, %b1 eps = 1.0e-5 : tensor<2x7x10xf64>, tensor<10xf64>
  %0 = nn.add %y, %x : (tensor<2x7x10xf64>, tensor<2x7x10xf64>) -> tensor<2x7x10xf64>
  %1 = nn.matmul %0, %w : (tensor<2x7x10xf64>, tensor<10x12xf64>) -> tensor<2x7x12xf64>
  %2 = nn.reshape %1 : tensor<2x7x12xf64> -> tensor<2x7x3x4xf64>
  %p = nn.iota dim = 0 : tensor<7xi64>
  %3 = nn.rope %2, %p base = 100.0 : tensor<2x7x3x4xf64>, tensor<7xi64>
  %z, %r = nn.rms_norm %3, %g2 eps = 1.0e-6 : tensor<2x7x3x4xf64>, tensor<4xf64>
  // Statistics that a model uses have a gradient, too.
  %4 = nn.reduce sum %z dims = [3] : tensor<2x7x3x4xf64> -> tensor<2x7x3xf64>
  %5 = nn.mul %4, %r : (tensor<2x7x3xf64>, tensor<2x7x3xf64>) -> tensor<2x7x3xf64>
  %6 = nn.tanh %5 : tensor<2x7x3xf64>
  %loss = nn.reduce mean %6 dims = [0, 1, 2] : tensor<2x7x3xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
