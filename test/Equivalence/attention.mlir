// Grouped-query attention under sharded heads: key/value heads, or query heads of a group (then k and v are whole and
// their cotangents partial), or both; counts that do not divide; with data parallelism. All masks at once, and rows that see nothing.
// DEFINE: %{mesh} =
// DEFINE: %{kv} =
// DEFINE: %{g} =
// DEFINE: %{check} = sed -e 's/MESH/%{mesh}/' -e 's/OVER_KV/%{kv}/g' -e 's/OVER_G/%{g}/g' %s > %t.mlir && \
// DEFINE:   shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=a,b optimizer=sgd" -o %t.global.mlir && \
// DEFINE:   shoal-opt %t.global.mlir --shoal-local="data-axes=data model-axes=a,b" --dist-expand-collectives \
// DEFINE:     --dist-verify-plan=reference=%t.global.mlir -o %t.local.mlir

// Key/value heads: 2 over 2, 3, 4.
// REDEFINE: %{kv} = {"a"}
// REDEFINE: %{g} = {}
// REDEFINE: %{mesh} = "data"=1, "a"=2, "b"=1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=KV --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=1, "a"=3, "b"=1
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "a"=4, "b"=1
// RUN: %{check}

// Nothing is gathered, and attention itself is local.
// KV-LABEL: func.func @model
// KV-NOT: all_gather
// KV: nn.attention %{{.*}} -> tensor<4x5x1x3x4xf64>
// KV: nn.attention_grad
// KV-NOT: all_gather

// Query heads of a group: 3 over 2 (padded), 3, 4.
// REDEFINE: %{kv} = {}
// REDEFINE: %{g} = {"b"}
// REDEFINE: %{mesh} = "data"=1, "a"=1, "b"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=3, "a"=1, "b"=3
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=G --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=1, "a"=1, "b"=4
// RUN: %{check}

// k and v are whole, and the gradients of their weights are summed over query heads.
// G-LABEL: func.func @model
// G-NOT: all_gather
// G: nn.attention %{{.*}} -> tensor<2x5x2x1x4xf64>
// G: nn.attention_grad %{{.*}} -> (tensor<2x5x2x1x4xf64>, tensor<2x5x2x4xf64>, tensor<2x5x2x4xf64>)
// G: dist.all_reduce {{.*}}"b"

// Both: 4 ranks as 2 x 2.
// REDEFINE: %{kv} = {"a"}
// REDEFINE: %{g} = {"b"}
// REDEFINE: %{mesh} = "data"=1, "a"=2, "b"=2
// RUN: %{check}
// REDEFINE: %{mesh} = "data"=2, "a"=2, "b"=3
// RUN: %{check}

dist.mesh @mesh <[MESH]>

func.func @model(
    %xq: tensor<4x5x2x3x4xf64> {nn.input = "xq"}, %xk: tensor<4x5x2x4xf64> {nn.input = "xk"}, %xv: tensor<4x5x2x4xf64> {nn.input = "xv"},
    %s: tensor<4x5xi64> {nn.input = "s"}, %y: tensor<4x5x4xf64> {nn.input = "y"},
    %wq: tensor<2x3x4xf64> {nn.param = #nn.param<"wq", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [OVER_KV, OVER_G, {}]>},
    %wk: tensor<2x4xf64> {nn.param = #nn.param<"wk", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [OVER_KV, {}]>},
    %wv: tensor<2x4xf64> {nn.param = #nn.param<"wv", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [OVER_KV, {}]>},
    %wo: tensor<2x3x4xf64> {nn.param = #nn.param<"wo", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [OVER_KV, OVER_G, {}]>})
    -> (tensor<f64> {nn.loss}) {
  %q = nn.mul %xq, %wq : (tensor<4x5x2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<4x5x2x3x4xf64>
  %k = nn.mul %xk, %wk : (tensor<4x5x2x4xf64>, tensor<2x4xf64>) -> tensor<4x5x2x4xf64>
  %v = nn.mul %xv, %wv : (tensor<4x5x2x4xf64>, tensor<2x4xf64>) -> tensor<4x5x2x4xf64>
  // Ids are drawn from 0 to 3. No key has segment 0: its queries see nothing.
  %one = nn.constant dense<1> : tensor<i64>
  %t = nn.maximum %s, %one : (tensor<4x5xi64>, tensor<i64>) -> tensor<4x5xi64>
  %o, %lse = nn.attention %q, %k, %v segments = %s, %t causal window = 4 scale = 0.7 : (tensor<4x5x2x3x4xf64>, tensor<4x5x2x4xf64>, tensor<4x5x2x4xf64>, tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5x2x3x4xf64>
  %p = nn.mul %o, %wo : (tensor<4x5x2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<4x5x2x3x4xf64>
  %h = nn.reduce sum %p dims = [2, 3] : tensor<4x5x2x3x4xf64> -> tensor<4x5x4xf64>
  %loss = nn.mse_loss mean %h, %y : (tensor<4x5x4xf64>, tensor<4x5x4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
