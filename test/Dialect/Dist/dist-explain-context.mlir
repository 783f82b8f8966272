// What removes a gather under context parallelism: another mode where it is of keys and values, none where an op needs all tokens.
// DEFINE: %{explain} = optimizer=sgd" --shoal-local="sequence-axes=context" --dist-explain -o /dev/null 2>&1 | FileCheck %s
// RUN: shoal-opt %s --shoal-global="sequence-axes=context context-parallel=ring %{explain} --check-prefixes=CHECK,RING
// RUN: shoal-opt %s --shoal-global="sequence-axes=context context-parallel=allgather %{explain} --check-prefixes=GATHER,CHECK,SCATTER
// RING-NOT: --context-parallel ring

// GATHER: for all keys and values for nn.attention:
// GATHER: removed by --context-parallel ring: keys and values would pass by in a ring, and none be whole

// CHECK: for operand 0 of nn.slice
// CHECK: removed by leave out --context-parallel: nn.slice needs dimension 1 whole

// SCATTER: for gradients of keys and values on their own devices behind nn.attention_grad
// SCATTER: removed by --context-parallel ring: these gradients would be added up on their way around a ring

dist.mesh @mesh <["context"=2]>
func.func @m(%x: tensor<2x8x4xf64> {nn.input = "x"}, %w: tensor<4x4xf64> {nn.param = #nn.param<"w", init = kaiming_uniform>}) -> (tensor<f64> {nn.loss}) {
  %h = nn.matmul %x, %w : (tensor<2x8x4xf64>, tensor<4x4xf64>) -> tensor<2x8x4xf64>
  %q = nn.reshape %h : tensor<2x8x4xf64> -> tensor<2x8x2x1x2xf64>
  %k = nn.reshape %h : tensor<2x8x4xf64> -> tensor<2x8x2x2xf64>
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<2x8x2x1x2xf64>, tensor<2x8x2x2xf64>, tensor<2x8x2x2xf64>) -> tensor<2x8x2x1x2xf64>
  %y = nn.reshape %o : tensor<2x8x2x1x2xf64> -> tensor<2x8x4xf64>
  %a = nn.slice %y dim = 1 start = 1 : tensor<2x8x4xf64> -> tensor<2x7x4xf64>
  %z = nn.mul %a, %a : (tensor<2x7x4xf64>, tensor<2x7x4xf64>) -> tensor<2x7x4xf64>
  %loss = nn.reduce sum %z dims = [0, 1, 2] : tensor<2x7x4xf64> -> tensor<f64>
  return %loss : tensor<f64>
}
