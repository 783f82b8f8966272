// The sequence over mesh axes means what one device computes, in each mode: lengths that ranks do not divide, few
// key/value heads, windows and segments, blocks of keys that a mask empties, dropout, tables of positions, several
// inputs of tokens, targets that are ignored.
// DEFINE: %{mesh} = context=5
// DEFINE: %{mode} =
// DEFINE: %{plan} =
// DEFINE: %{tokens} = 12
// DEFINE: %{table} = 12
// DEFINE: %{kv} = 2
// DEFINE: %{groups} = 3
// DEFINE: %{mask} = causal
// DEFINE: %{masked} =
// DEFINE: %{local} = shoalc %t.mlir --mesh %{mesh} --context-parallel %{mode} --optimizer sgd --emit local -o -
// DEFINE: %{hops} = %{local} | grep -c dist.permute_start | grep -x
// DEFINE: %{model} = sed -e 's/TOKENS/%{tokens}/g;s/TABLE/%{table}/g;s/KV/%{kv}/g;s/GROUPS/%{groups}/g' \
// DEFINE:   -e 's/MASKED/%{masked}/;s/MASK/%{mask}/' %s > %t.mlir
// DEFINE: %{equal} = %{model} && shoalc %t.mlir --mesh %{mesh} --context-parallel %{mode} %{plan} --optimizer adam \
// DEFINE:   --verify-plan 2>&1 | FileCheck %s --check-prefix=EQUAL
// EQUAL: the plan equals one device, --mode train
// EQUAL: the plan equals one device, --mode eval

// 12 tokens over 5 ranks, and 3, of which two ranks have none. Tables of positions with a row for each token, and more.
// REDEFINE: %{mode} = ring
// RUN: %{equal}
// REDEFINE: %{mode} = zigzag
// RUN: %{equal}
// REDEFINE: %{mode} = allgather
// RUN: %{equal}
// REDEFINE: %{mode} = ring
// REDEFINE: %{tokens} = 3
// REDEFINE: %{table} = 5
// RUN: %{equal}
// REDEFINE: %{mode} = zigzag
// RUN: %{equal}
// REDEFINE: %{mode} = allgather
// RUN: %{equal}
// REDEFINE: %{mesh} = context=3,ulysses=2
// REDEFINE: %{mode} = hybrid
// REDEFINE: %{tokens} = 11
// REDEFINE: %{table} = 12
// RUN: %{equal}

// Ulysses: heads that ranks do not divide (5 over 3 ranks, 7 over 5), 2 key/value heads over 4 ranks, which
// have half of the query heads of one; and one key/value head, which all ranks have, and whose gradients are summed.
// REDEFINE: %{mesh} = context=3
// REDEFINE: %{mode} = ulysses
// REDEFINE: %{kv} = 5
// REDEFINE: %{groups} = 1
// REDEFINE: %{tokens} = 12
// RUN: %{equal}
// REDEFINE: %{mesh} = context=5
// REDEFINE: %{tokens} = 3
// REDEFINE: %{kv} = 7
// RUN: %{equal}
// REDEFINE: %{mesh} = context=4
// REDEFINE: %{tokens} = 12
// REDEFINE: %{kv} = 2
// REDEFINE: %{groups} = 3
// RUN: %{equal}
// REDEFINE: %{mesh} = context=2
// REDEFINE: %{kv} = 1
// REDEFINE: %{groups} = 4
// RUN: %{equal}
// REDEFINE: %{mesh} = context=4
// RUN: %{equal}
// RUN: %{local} | FileCheck %s --check-prefix=MQA
// MQA-LABEL: func.func @model
// MQA: nn.attention {{.*}} -> tensor<2x12x1x1x4xf64>
// MQA: nn.attention_grad {{.*}} -> (tensor<2x12x1x1x4xf64>, tensor<2x12x1x4xf64>, tensor<2x12x1x4xf64>)
// MQA: dist.reduce_scatter {{.*}}"context"{{.*}} sum
// REDEFINE: %{mesh} = context=2,ulysses=4
// REDEFINE: %{mode} = hybrid
// RUN: %{equal}
// REDEFINE: %{mesh} = context=2,ulysses=2
// REDEFINE: %{plan} = --dtype bf16
// RUN: %{equal}
// REDEFINE: %{mesh} = context=4
// REDEFINE: %{mode} = ring
// REDEFINE: %{plan} =
// RUN: %{equal}

// More devices than heads can be dealt out to are refused.
// REDEFINE: %{mesh} = context=6
// REDEFINE: %{mode} = ulysses
// RUN: %{model} && not %{local} 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: error: Ulysses deals 6 devices out to key/value heads, as many as divide these, and to the query heads of one, got: 1 key/value head of 4 query heads; take --context-parallel ring or zigzag, or hybrid with an axis "ulysses" of 3
// REDEFINE: %{kv} = 2
// REDEFINE: %{groups} = 3
// REDEFINE: %{mesh} = context=5
// RUN: %{model} && not %{local} 2>&1 | FileCheck %s --check-prefix=NUMBERS
// NUMBERS: error: Ulysses deals 5 devices out {{.*}}, got: 2 key/value heads of 3 query heads each; take
// NONE: func.func @model

// A window ends the way of keys early, and one that is not causal has them come from both directions. Each hop has two
// permutations forward and four backward: keys and values, and their gradients, of which the last hop is the way home.
// REDEFINE: %{mesh} = context=5
// REDEFINE: %{mode} = ring
// REDEFINE: %{kv} = 2
// REDEFINE: %{groups} = 3
// RUN: %{equal}
// RUN: %{hops} 24
// REDEFINE: %{mask} = causal window = 3
// RUN: %{equal}
// RUN: %{hops} 6
// REDEFINE: %{mask} = causal window = 5
// RUN: %{equal}
// RUN: %{hops} 12
// REDEFINE: %{mask} = window = 3
// RUN: %{equal}
// RUN: %{hops} 12
// REDEFINE: %{mask} = window = 5
// RUN: %{equal}
// RUN: %{hops} 24
// REDEFINE: %{mask} = causal window = 1
// RUN: %{equal}
// RUN: %{local} | FileCheck %s --check-prefix=NONE --implicit-check-not=permute_start
// REDEFINE: %{mode} = zigzag
// REDEFINE: %{mask} = causal window = 3
// RUN: %{equal}
// REDEFINE: %{mask} = window = 3
// RUN: %{equal}
// Zigzag has earlier tokens on either side: of chunks of 4 a window of 5 reaches the next ones, one of 6 two, and all
// ranks; of 27 tokens ranks have 3 and 3, the last one 2 and 1.
// REDEFINE: %{tokens} = 40
// REDEFINE: %{table} = 40
// RUN: %{equal}
// RUN: %{hops} 12
// REDEFINE: %{mask} = causal window = 5
// RUN: %{equal}
// RUN: %{hops} 12
// REDEFINE: %{mask} = causal window = 6
// RUN: %{equal}
// RUN: %{hops} 24
// REDEFINE: %{mask} = causal window = 4
// REDEFINE: %{tokens} = 27
// RUN: %{equal}
// RUN: %{hops} 12
// REDEFINE: %{tokens} = 12
// REDEFINE: %{table} = 12
// REDEFINE: %{mask} = window = 3
// REDEFINE: %{mode} = allgather
// REDEFINE: %{mask} = causal window = 3
// RUN: %{equal}
// REDEFINE: %{mask} = window = 3
// RUN: %{equal}
// REDEFINE: %{mesh} = context=3,ulysses=2
// REDEFINE: %{mode} = hybrid
// RUN: %{equal}

// Segments of queries and keys are drawn apart: among a device's own keys, the first of the ring, are often none that a
// query sees, and of others some.
// REDEFINE: %{mesh} = context=5
// REDEFINE: %{mode} = ring
// REDEFINE: %{mask} = segments = %qs, %ks
// REDEFINE: %{masked} = , tensor<2x%{tokens}xi64>, tensor<2x%{tokens}xi64>
// RUN: %{equal}
// REDEFINE: %{mask} = segments = %qs, %ks causal
// RUN: %{equal}
// REDEFINE: %{mode} = zigzag
// RUN: %{equal}
// REDEFINE: %{mode} = allgather
// RUN: %{equal}
// REDEFINE: %{mode} = ring
// REDEFINE: %{mask} = segments = %qs, %ks causal window = 4
// RUN: %{equal}
// REDEFINE: %{mesh} = context=4
// REDEFINE: %{mode} = ulysses
// REDEFINE: %{mask} = segments = %qs, %ks causal
// RUN: %{equal}
// REDEFINE: %{mesh} = context=3,ulysses=2
// REDEFINE: %{mode} = hybrid
// RUN: %{equal}

// Beside other strategies.
// REDEFINE: %{mesh} = data=2,context=3
// REDEFINE: %{mode} = zigzag
// REDEFINE: %{plan} = --zero 3 --microbatches 2
// REDEFINE: %{tokens} = 11
// RUN: %{equal}
// REDEFINE: %{mesh} = context=2,tensor=2
// REDEFINE: %{plan} = --tensor-parallel --sequence-parallel --recompute full
// RUN: %{equal}
// REDEFINE: %{mesh} = context=3,pipe=2
// REDEFINE: %{plan} = --microbatches 2
// RUN: %{equal}
// REDEFINE: %{mesh} = context=3
// REDEFINE: %{mode} = ring
// REDEFINE: %{plan} = --dtype bf16 --recompute selective
// RUN: %{equal}

func.func @model(
    %ids: tensor<2xTOKENSxi64> {nn.input = "ids"},
    %qs: tensor<2xTOKENSxi64> {nn.input = "qs"},
    %ks: tensor<2xTOKENSxi64> {nn.input = "ks"},
    %y: tensor<2xTOKENSxi64> {nn.input = "y"},
    %w: tensor<7x6xf64> {nn.param = #nn.param<"w", init = uniform(-1.0, 1.0)>},
    %p: tensor<TABLEx6xf64> {nn.param = #nn.param<"p", init = uniform(-1.0, 1.0)>},
    %t: tensor<7x6xf64> {nn.param = #nn.param<"t", init = uniform(-1.0, 1.0)>},
    %wq: tensor<6xKVxGROUPSx4xf64> {nn.param = #nn.param<"wq", init = uniform(-1.0, 1.0)>},
    %wk: tensor<6xKVx4xf64> {nn.param = #nn.param<"wk", init = uniform(-1.0, 1.0)>},
    %wv: tensor<6xKVx4xf64> {nn.param = #nn.param<"wv", init = uniform(-1.0, 1.0)>},
    %wo: tensor<KVxGROUPSx4x6xf64> {nn.param = #nn.param<"wo", init = uniform(-1.0, 1.0)>},
    %h: tensor<6x7xf64> {nn.param = #nn.param<"h", init = uniform(-1.0, 1.0)>})
    -> (tensor<f64> {nn.loss}, tensor<2xTOKENSx7xf64> {nn.output = "logits"}) {
  %at = nn.iota dim = 0 : tensor<TOKENSxi64>
  %places = nn.embedding %p, %at : (tensor<TABLEx6xf64>, tensor<TOKENSxi64>) -> tensor<TOKENSx6xf64>
  %0 = nn.embedding %w, %ids : (tensor<7x6xf64>, tensor<2xTOKENSxi64>) -> tensor<2xTOKENSx6xf64>
  %1 = nn.embedding %t, %qs : (tensor<7x6xf64>, tensor<2xTOKENSxi64>) -> tensor<2xTOKENSx6xf64>
  %2 = nn.embedding %t, %ks : (tensor<7x6xf64>, tensor<2xTOKENSxi64>) -> tensor<2xTOKENSx6xf64>
  %rows = nn.slice %p dim = 0 start = 0 : tensor<TABLEx6xf64> -> tensor<TOKENSx6xf64>
  %twice = nn.add %places, %rows : (tensor<TOKENSx6xf64>, tensor<TOKENSx6xf64>) -> tensor<TOKENSx6xf64>
  %3 = nn.add %0, %twice : (tensor<2xTOKENSx6xf64>, tensor<TOKENSx6xf64>) -> tensor<2xTOKENSx6xf64>
  %4 = nn.add %1, %2 : (tensor<2xTOKENSx6xf64>, tensor<2xTOKENSx6xf64>) -> tensor<2xTOKENSx6xf64>
  %5 = nn.add %3, %4 : (tensor<2xTOKENSx6xf64>, tensor<2xTOKENSx6xf64>) -> tensor<2xTOKENSx6xf64>
  %x = nn.dropout %5 rate = 0.2 id = 0 : tensor<2xTOKENSx6xf64>
  %q = nn.tensordot %x, %wq axes = 1 {nn.layer = "h.0"} : (tensor<2xTOKENSx6xf64>, tensor<6xKVxGROUPSx4xf64>) -> tensor<2xTOKENSxKVxGROUPSx4xf64>
  %k = nn.tensordot %x, %wk axes = 1 {nn.layer = "h.0"} : (tensor<2xTOKENSx6xf64>, tensor<6xKVx4xf64>) -> tensor<2xTOKENSxKVx4xf64>
  %v = nn.tensordot %x, %wv axes = 1 {nn.layer = "h.0"} : (tensor<2xTOKENSx6xf64>, tensor<6xKVx4xf64>) -> tensor<2xTOKENSxKVx4xf64>
  %o, %lse = nn.attention %q, %k, %v MASK scale = 0.7 {nn.layer = "h.0"} : (tensor<2xTOKENSxKVxGROUPSx4xf64>, tensor<2xTOKENSxKVx4xf64>, tensor<2xTOKENSxKVx4xf64>MASKED) -> tensor<2xTOKENSxKVxGROUPSx4xf64>
  %6 = nn.tensordot %o, %wo axes = 3 {nn.layer = "h.0"} : (tensor<2xTOKENSxKVxGROUPSx4xf64>, tensor<KVxGROUPSx4x6xf64>) -> tensor<2xTOKENSx6xf64>
  %7 = nn.add %x, %6 {nn.layer = "h.0"} : (tensor<2xTOKENSx6xf64>, tensor<2xTOKENSx6xf64>) -> tensor<2xTOKENSx6xf64>
  %8 = nn.dropout %7 rate = 0.3 id = 1 {nn.layer = "h.0"} : tensor<2xTOKENSx6xf64>
  %9 = nn.matmul %8, %h : (tensor<2xTOKENSx6xf64>, tensor<6x7xf64>) -> tensor<2xTOKENSx7xf64>
  %loss, %lse2 = nn.cross_entropy mean %9, %y ignore_index = -100 : (tensor<2xTOKENSx7xf64>, tensor<2xTOKENSxi64>) -> tensor<f64>
  return %loss, %9 : tensor<f64>, tensor<2xTOKENSx7xf64>
}
