// A loss over a softmax of the batch dimension trains under data parallelism: its gradient divides one partial sum
// by another, of which only the denominator is reduced first.
// DEFINE: %{mesh} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data" --dist-verify-plan=reference=%t.global.mlir -o /dev/null

// REDEFINE: %{mesh} = "data"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3
// RUN: %{check}

dist.mesh @mesh <[MESH]>

func.func @model(%x: tensor<5x3xf64> {nn.input = "x"},
                 %w: tensor<3xf64> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<f64> {nn.loss}) {
  %h = nn.mul %x, %w : (tensor<5x3xf64>, tensor<3xf64>) -> tensor<5x3xf64>
  %s = nn.log_softmax %h dim = 0 : tensor<5x3xf64>
  %q = nn.mul %s, %x : (tensor<5x3xf64>, tensor<5x3xf64>) -> tensor<5x3xf64>
  %l = nn.reduce sum %q dims = [0, 1] : tensor<5x3xf64> -> tensor<f64>
  return %l : tensor<f64>
}
