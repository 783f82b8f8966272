// What passes by around a ring is one entry, with its hops, the products beside them and what of them is waited for.
// DEFINE: %{global} = shoal-opt %s --shoal-global="sequence-axes=context
// DEFINE: %{local} = optimizer=sgd" --shoal-local="sequence-axes=context" --dist-explain -o /dev/null 2>&1 | FileCheck %s
// RUN: %{global} context-parallel=ring %{local} --check-prefixes=CHECK,RING
// RUN: %{global} context-parallel=zigzag %{local} --check-prefixes=CHECK,ZIGZAG
// RUN: %{global} context-parallel=allgather %{local} --check-prefix=GATHER
// RUN: %{global} context-parallel=ulysses %{local} --check-prefix=ULYSSES
// RUN: shoal-opt %s --shoal-global="sequence-axes=context context-parallel=ring optimizer=sgd" --shoal-local="sequence-axes=context overlap=false" \
// RUN:   --dist-explain=overlap=false -o /dev/null 2>&1 | FileCheck %s --check-prefix=WAITS

// 4 ranks of 256 tokens, 2 of 4 heads of 64 hold keys: of each hop 2 * 256 * 2 * 64 * 4 bytes, beside 2 * 2 * 256^2 * 4 * 64
// operations, of which a causal mask in the order of zigzag leaves half to everyone.
// CHECK: (times of rings are estimates for a device of 160 GFLOP/s
// CHECK: collective_permute {"context"}, 4 ranks, 3 hops of 262144 bytes: 786432 bytes in 6 messages{{$}}
// CHECK-NEXT: in the forward pass
// CHECK-NEXT: for nn.attention in h.0: keys, values tensor<1x256x2x64xf32> of each rank pass by all others
// CHECK-NEXT: because --context-parallel shards the sequence
// RING-NEXT: beside nn.attention of the rows that have come, 67.1 MFLOP, about {{.*}} us per hop
// ZIGZAG-NEXT: beside nn.attention of the rows that have come, 33.6 MFLOP, about {{.*}} us per hop
// CHECK-NEXT: hidden yes: a hop takes about {{.*}} us
// CHECK-NEXT: removed by a mesh without {"context"}, whose ranks have tokens of their own; --context-parallel ulysses would exchange tokens for heads instead

// Gradients of keys and values pass by with them, and their last hop home has nothing beside it.
// CHECK: collective_permute {"context"}, 4 ranks, 3 hops of 524288 bytes: 1572864 bytes in 12 messages{{$}}
// CHECK-NEXT: in the backward pass
// CHECK-NEXT: for nn.attention_grad in h.0: keys, values, gradient of the keys, gradient of the values tensor<1x256x2x64xf32> of each rank pass by all others
// CHECK-NEXT: because
// CHECK-NEXT: beside nn.attention_grad
// CHECK-NEXT: hidden in part: a hop takes about
// CHECK-NOT: collective_permute {"context"}, 4 ranks

// What a rank updates of a table of positions is that of its tokens.
// RING: all_gather {"context"}
// RING-NEXT: in the update
// RING: removed by a mesh without {"context"}: its ranks have tokens of their own, and update what belongs to these
// CHECK: collective_permute {"context"}: 18 times, 2359296 bytes

// WAITS: 6 messages
// WAITS: beside nothing: --no-overlap
// WAITS-NEXT: hidden no: a hop takes about

// GATHER: all_gather {"context"}
// GATHER-NEXT: in the forward pass
// GATHER-NEXT: for all keys and values for nn.attention in h.0
// GATHER: removed by --context-parallel ring: keys and values would pass by in a ring, and none be whole
// GATHER: reduce_scatter {"context"}
// GATHER-NEXT: in the backward pass
// GATHER-NEXT: for gradients of keys and values on their own devices behind nn.attention_grad in h.0
// GATHER: removed by --context-parallel ring: these gradients would be added up on their way around a ring
// Two heads of keys over 4 ranks: half of the axis shards them.
// ULYSSES: all_to_all {"context.1"}, 2 ranks
// ULYSSES-NEXT: in the forward pass
// ULYSSES-NEXT: for all tokens of some heads for nn.attention in h.0
// ULYSSES: removed by a mesh without {"context.1"}, whose ranks have tokens of their own; --context-parallel ring would let keys and values pass by instead
// ULYSSES: all_gather {"context.1"}, 2 ranks
// ULYSSES: removed by --context-parallel ring: keys and values would pass by in a ring, and none be whole
dist.mesh @mesh <["context"=4]>
func.func @block(%x: tensor<1x1024x4x64xf32> {nn.input = "x"}, %y: tensor<1x1024x2x2x64xf32> {nn.input = "y"},
                 %p: tensor<1024x4x64xf32> {nn.param = #nn.param<"positions", init = zeros>},
                 %wq: tensor<4x64x2x2x64xf32> {nn.param = #nn.param<"wq", init = zeros>},
                 %wk: tensor<4x64x2x64xf32> {nn.param = #nn.param<"wk", init = zeros>},
                 %wv: tensor<4x64x2x64xf32> {nn.param = #nn.param<"wv", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %b = nn.broadcast %p : tensor<1024x4x64xf32> -> tensor<1x1024x4x64xf32>
  %s = nn.add %x, %b : (tensor<1x1024x4x64xf32>, tensor<1x1024x4x64xf32>) -> tensor<1x1024x4x64xf32>
  %q = nn.tensordot %s, %wq axes = 2 {nn.layer = "h.0"} : (tensor<1x1024x4x64xf32>, tensor<4x64x2x2x64xf32>) -> tensor<1x1024x2x2x64xf32>
  %k = nn.tensordot %s, %wk axes = 2 {nn.layer = "h.0"} : (tensor<1x1024x4x64xf32>, tensor<4x64x2x64xf32>) -> tensor<1x1024x2x64xf32>
  %v = nn.tensordot %s, %wv axes = 2 {nn.layer = "h.0"} : (tensor<1x1024x4x64xf32>, tensor<4x64x2x64xf32>) -> tensor<1x1024x2x64xf32>
  %o, %lse = nn.attention %q, %k, %v causal scale = 0.125 {nn.layer = "h.0"} : (tensor<1x1024x2x2x64xf32>, tensor<1x1024x2x64xf32>, tensor<1x1024x2x64xf32>) -> tensor<1x1024x2x2x64xf32>
  %loss = nn.mse_loss mean %o, %y : (tensor<1x1024x2x2x64xf32>, tensor<1x1024x2x2x64xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
