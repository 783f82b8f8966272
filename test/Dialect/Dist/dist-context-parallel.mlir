// RUN: shoal-opt %s --dist-context-parallel | FileCheck %s --enable-var-scope --check-prefix=RING
// RUN: shoal-opt %s --dist-context-parallel=mode=allgather | FileCheck %s --enable-var-scope --check-prefix=GATHER
// RUN: shoal-opt %s "--dist-context-parallel=mode=allgather keep-gathered=true" | FileCheck %s --enable-var-scope --check-prefix=KEEP
// RUN: shoal-opt %s --dist-context-parallel=mode=ulysses | FileCheck %s --enable-var-scope --check-prefix=HEADS
// RUN: shoal-opt %s --dist-context-parallel=mode=hybrid | FileCheck %s --enable-var-scope --check-prefix=HYBRID
// RUN: shoal-opt %s --dist-context-parallel=mode=zigzag | FileCheck %s --enable-var-scope --check-prefix=ZIGZAG

// A ring is the op on shards: inputs are annotated, and nothing else.
// RING-LABEL: func.func @step
// RING-SAME: %[[X:[^:]*]]: tensor<2x12x8xf32> {dist.sharding = #dist.sharding<@mesh, [{?}, {"context"}, {?}]>, dist.why = {context = #dist.cause<"the sequence" by "--context-parallel">}
// RING-NOT: dist.reshard
// RING-NOT: nn.zigzag

// Keys and values are gathered, again for the backward pass; their gradients, sums over the queries, go back to shards.
// GATHER-LABEL: func.func @step
// GATHER: %[[K:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}, {?}]> {{{.*}}reason = "all keys and values for nn.attention"}
// GATHER: %[[V:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}, {?}]>
// GATHER: nn.attention %{{.*}}, %[[K]], %[[V]] causal
// GATHER: %[[KAGAIN:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}, {?}]> {dist.refetch
// GATHER: %[[VAGAIN:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}, {?}]> {dist.refetch
// GATHER: %{{.*}}, %[[DK:.*]], %[[DV:.*]] = nn.attention_grad %{{.*}}, %{{.*}}, %[[KAGAIN]], %[[VAGAIN]]
// GATHER-DAG: dist.reshard %[[DK]] <@mesh, [{?}, {"context"}, {?}, {?}]>
// GATHER-DAG: dist.reshard %[[DV]] <@mesh, [{?}, {"context"}, {?}, {?}]>

// What is kept serves both passes.
// KEEP-LABEL: func.func @step
// KEEP: %[[K:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}, {?}]>
// KEEP-NOT: refetch
// KEEP: nn.attention_grad %{{.*}}, %{{.*}}, %[[K]]

// Tokens for heads before attention and heads for tokens behind it; the backward pass finds what the forward pass made by heads.
// HEADS-LABEL: func.func @step
// HEADS: %[[Q:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {"context"}, {}, {?}]>
// HEADS: %[[K:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {"context"}, {?}]>
// HEADS: %[[V:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {"context"}, {?}]>
// HEADS: %[[O:.*]], %[[LSE:.*]] = nn.attention %[[Q]], %[[K]], %[[V]]
// HEADS: dist.reshard %[[O]] <@mesh, [{?}, {"context"}, {}, {}, {?}]>
// HEADS: %[[DO:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {"context"}, {}, {?}]>
// HEADS: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = nn.attention_grad %[[DO]], %[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]]
// HEADS-DAG: dist.reshard %[[DQ]] <@mesh, [{?}, {"context"}, {}, {}, {?}]>
// HEADS-DAG: dist.reshard %[[DK]] <@mesh, [{?}, {"context"}, {}, {?}]>
// HEADS-DAG: dist.reshard %[[DV]] <@mesh, [{?}, {"context"}, {}, {?}]>

// Heads over one axis, and between, the sequence over the other one alone.
// HYBRID-LABEL: func.func @step
// HYBRID-SAME: dist.sharding = #dist.sharding<@mesh, [{?}, {"context", "ulysses"}, {?}]>
// HYBRID: dist.reshard %{{.*}} <@mesh, [{?}, {"context"}, {"ulysses"}, {}, {?}]>
// HYBRID: nn.attention

// What enters is brought into the stored order, what leaves out of it. Attention and dropout are told where rows lie.
// ZIGZAG-LABEL: func.func @step
// ZIGZAG-SAME: %[[X:[^:]*]]: tensor<2x12x8xf32> {nn.input = "x"}, %[[P:[^:]*]]: tensor<12x8xf32>
// ZIGZAG-DAG: %[[ROWS:.*]] = nn.iota dim = 0
// ZIGZAG-DAG: %[[AT:.*]] = nn.zigzag %[[ROWS]] dim = 0 ranks = 2 {dist.shardings = [#dist.sharding<@mesh, [{}]>]}
// ZIGZAG-DAG: %[[XZ:.*]] = nn.zigzag %[[X]] dim = 1 ranks = 2 {dist.shardings = [#dist.sharding<@mesh, [{?}, {"context"}, {?}]>]
// ZIGZAG-DAG: %[[PZ:.*]] = nn.zigzag %[[P]] dim = 0 ranks = 2
// ZIGZAG: nn.add %[[XZ]], %[[PZ]]
// ZIGZAG: nn.dropout %{{.*}} positions = %[[AT]] dim = 1
// ZIGZAG: nn.attention %{{.*}} positions = %[[AT]], %[[AT]] causal
// ZIGZAG: %[[OUT:.*]] = nn.zigzag %{{.*}} dim = 1 ranks = 2 inverse
// ZIGZAG: nn.attention_grad %{{.*}} positions = %[[AT]], %[[AT]] causal
// ZIGZAG: %[[GRAD:.*]] = nn.zigzag %{{.*}} dim = 0 ranks = 2 inverse
// ZIGZAG: %[[NEW:.*]] = nn.sgd_update %[[P]], %[[GRAD]]
// ZIGZAG: return %[[NEW]], %[[OUT]]
dist.mesh @mesh <["context"=2, "ulysses"=2]>
func.func @step(%x: tensor<2x12x8xf32> {nn.input = "x"}, %p: tensor<12x8xf32> {nn.param = #nn.param<"p", init = zeros>})
    -> (tensor<12x8xf32> {nn.updates = "p"}, tensor<2x12x8xf32> {nn.output = "h"}, tensor<f32> {nn.loss}) {
  %one = nn.constant dense<1.0> : tensor<2x12x2x2x2xf32>
  %lr = nn.constant dense<0.5> : tensor<f32>
  %0 = nn.add %x, %p : (tensor<2x12x8xf32>, tensor<12x8xf32>) -> tensor<2x12x8xf32>
  %1 = nn.dropout %0 rate = 0.1 id = 0 : tensor<2x12x8xf32>
  %q = nn.reshape %1 : tensor<2x12x8xf32> -> tensor<2x12x2x2x2xf32>
  %ks = nn.slice %1 dim = 2 start = 0 : tensor<2x12x8xf32> -> tensor<2x12x4xf32>
  %k = nn.reshape %ks : tensor<2x12x4xf32> -> tensor<2x12x2x2xf32>
  %vs = nn.slice %1 dim = 2 start = 4 : tensor<2x12x8xf32> -> tensor<2x12x4xf32>
  %v = nn.reshape %vs : tensor<2x12x4xf32> -> tensor<2x12x2x2xf32>
  %o, %lse = nn.attention %q, %k, %v causal scale = 0.5 : (tensor<2x12x2x2x2xf32>, tensor<2x12x2x2xf32>, tensor<2x12x2x2xf32>) -> tensor<2x12x2x2x2xf32>
  %y = nn.reshape %o : tensor<2x12x2x2x2xf32> -> tensor<2x12x8xf32>
  %loss = nn.reduce sum %y dims = [0, 1, 2] : tensor<2x12x8xf32> -> tensor<f32>
  %dq, %dk, %dv = nn.attention_grad %one, %q, %k, %v, %o, %lse causal scale = 0.5 : (tensor<2x12x2x2x2xf32>, tensor<2x12x2x2x2xf32>, tensor<2x12x2x2xf32>, tensor<2x12x2x2xf32>, tensor<2x12x2x2x2xf32>, tensor<2x12x2x2xf32>) -> (tensor<2x12x2x2x2xf32>, tensor<2x12x2x2xf32>, tensor<2x12x2x2xf32>)
  %dks = nn.reshape %dk : tensor<2x12x2x2xf32> -> tensor<2x12x4xf32>
  %dvs = nn.reshape %dv : tensor<2x12x2x2xf32> -> tensor<2x12x4xf32>
  %dkv = nn.concat %dks, %dvs dim = 2 : (tensor<2x12x4xf32>, tensor<2x12x4xf32>) -> tensor<2x12x8xf32>
  %dqs = nn.reshape %dq : tensor<2x12x2x2x2xf32> -> tensor<2x12x8xf32>
  %d = nn.add %dkv, %dqs : (tensor<2x12x8xf32>, tensor<2x12x8xf32>) -> tensor<2x12x8xf32>
  %dx = nn.dropout %d rate = 0.1 id = 0 : tensor<2x12x8xf32>
  %dp = nn.reduce sum %dx dims = [0] : tensor<2x12x8xf32> -> tensor<12x8xf32>
  %new = nn.sgd_update %p, %dp lr = %lr {weight_decay = 0.0 : f64} : tensor<12x8xf32>, tensor<f32>
  return %new, %y, %loss : tensor<12x8xf32>, tensor<2x12x8xf32>, tensor<f32>
}
