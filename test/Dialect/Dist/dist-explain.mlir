// RUN: shoal-opt %s --split-input-file --dist-propagate --dist-partition --dist-verify-local --dist-explain -o /dev/null 2>&1 | FileCheck %s
// RUN: shoal-opt %s --split-input-file --dist-propagate --dist-partition --dist-explain=overlap=false -o /dev/null 2>&1 | FileCheck %s --check-prefix=WAITS

// An annotation by hand is named with its place: rows of w1 and columns of x are summed.
// CHECK-LABEL: 1 collective in @by_hand: one rank sends 64 bytes in a step
// CHECK: all_reduce {"x"}, 2 ranks, tensor<8x2xf32>: 64 bytes
// CHECK-NEXT: for result 0: [{}, {}] sum{"x"} -> [{}, {}]
// CHECK-NEXT: because the annotation of "w1" at dist-explain.mlir:
// CHECK-NEXT: beside nothing: the step returns it as result 0 at once
// CHECK-NEXT: removed by change the annotation of "w1" at dist-explain.mlir:{{.*}}: a result of the function is combined over the ranks of {"x"}
// CHECK: in total
// CHECK-NEXT: all_reduce {"x"}: 1 time, 64 bytes
// WAITS-LABEL: 1 collective in @by_hand
// WAITS: beside nothing: --no-overlap
dist.mesh @mesh <["x"=2]>
func.func @by_hand(%x: tensor<8x4xf32>,
                   %w1: tensor<4x2xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  %0 = nn.matmul %x, %w1 : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

// A product runs beside the gather.
// CHECK-LABEL: 1 collective in @beside: one rank sends 128 bytes in a step
// CHECK: all_gather {"x"}, 2 ranks, tensor<8x4xf32>: 128 bytes
// CHECK-NEXT: for
// CHECK-NEXT: because the annotation of argument 0
// CHECK-NEXT: beside 1 op, 1.02 kFLOP, until nn.add reads it
dist.mesh @mesh <["x"=2]>
func.func @beside(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                  %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) -> tensor<8x8xf32> {
  %0 = dist.reshard %a <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = nn.matmul %b, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = nn.add %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Layers that communicate alike are told once.
// CHECK-LABEL: 2 collectives in @layers: one rank sends 256 bytes in a step
// CHECK: all_reduce {"x"}, 2 ranks, tensor<8x4xf32>: 128 bytes, 2 times: 256 bytes
// CHECK-NEXT: in 2 layers h.0, h.1
// CHECK-NEXT: for operand 0 of nn.relu: [{}, {}] sum{"x"} -> [{}, {}]
// CHECK-NEXT: because the annotation of argument 0 at
// CHECK-NEXT: beside nothing: nn.relu reads it at once
// CHECK-NEXT: removed by change the annotation of argument 0 at dist-explain.mlir:{{.*}}: what nn.matmul combines lies on all ranks of {"x"}
// CHECK-NOT: all_reduce {"x"},
// CHECK: all_reduce {"x"}: 2 times, 256 bytes
dist.mesh @mesh <["x"=2]>
func.func @layers(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                  %w: tensor<4x4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = nn.matmul %a, %w {nn.layer = "h.0"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = nn.relu %0 {nn.layer = "h.0"} : tensor<8x4xf32>
  %2 = nn.matmul %a, %w {nn.layer = "h.1"} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %3 = nn.relu %2 {nn.layer = "h.1"} : tensor<8x4xf32>
  %4 = nn.add %1, %3 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// -----

// In micro-batches a collective counts once for each; one of the sum counts once.
// CHECK-LABEL: collectives in @micro
// CHECK: all_reduce {"x"}, 2 ranks, tensor<4x2xf32>: 64 bytes in 2 micro-batches
// CHECK: in total
// CHECK-NEXT: all_reduce {"x"}: {{[0-9]+}} times, {{[0-9]+}} bytes
dist.mesh @mesh <["x"=2]>
func.func @micro(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
                 %w: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<f32> {
  %0 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.matmul %m, %w : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = nn.relu %1 : tensor<4x2xf32>
    %3 = nn.reduce sum %2 dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
    dist.yield %3 : tensor<f32>
  } : (tensor<8x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// An op that needs a dimension whole is named.
// CHECK-LABEL: 1 collective in @needs
// CHECK: all_gather {"x"}, 2 ranks, tensor<2x4x1x1x1xf32>: 32 bytes
// CHECK-NEXT: for operand 0 of nn.attention: [{}, {}, {}, {}, {"x"}] -> [{}, {}, {}, {}, {}]
// CHECK-NEXT: because the annotation of argument 0 at
// CHECK-NEXT: beside
// CHECK-NEXT: removed by change the annotation of argument 0 at {{.*}}: nn.attention needs dimension 4 whole
dist.mesh @mesh <["x"=2]>
func.func @needs(%q: tensor<2x4x1x1x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}, {}, {}, {"x"}]>},
                 %k: tensor<2x4x1x2xf32>, %v: tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32> {
  %o, %lse = nn.attention %q, %k, %v scale = 1.0 : (tensor<2x4x1x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>) -> tensor<2x4x1x1x2xf32>
  return %o : tensor<2x4x1x1x2xf32>
}

// -----

// A result that is annotated whole where it lies in shards, and rows that are dealt out by micro-batch.
// CHECK-LABEL: collectives in @rows
// CHECK: all_to_all {"x"}
// CHECK-NEXT: for input 0 of the micro-batches: a shard of rows -> a shard of every micro-batch
// CHECK-NEXT: because the annotation of argument 0 at
// CHECK-NEXT: beside
// CHECK-NEXT: removed by one micro-batch: of several each rank computes a part, and has whole ones
// CHECK: all_gather {"x"}
// CHECK-NEXT: for result 0: [{"x"}, {}] -> [{}, {}]
// CHECK-NEXT: because the annotation of argument 0 at
// CHECK-NEXT: beside
// CHECK-NEXT: removed by the result annotated as it lies, or change the annotation of argument 0
dist.mesh @mesh <["x"=2]>
func.func @rows(%a: tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, tensor<f32>) {
  %0 = nn.relu %a : tensor<8x2xf32>
  %1 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x2xf32>):
    %2 = nn.reduce sum %m dims = [0, 1] : tensor<4x2xf32> -> tensor<f32>
    dist.yield %2 : tensor<f32>
  } : (tensor<8x2xf32>) -> tensor<f32>
  return %0, %1 : tensor<8x2xf32>, tensor<f32>
}

// -----

// Arguments, results and what the compiler makes of micro-batches have the names of the file.
// CHECK-LABEL: collectives in @named
// CHECK: for "rows" in micro-batches: a shard of rows -> a shard of every micro-batch
// CHECK: beside nothing: a micro-batch reads it at once
// CHECK: for operand 0 of nn.tanh
// CHECK: beside nothing: nn.tanh reads it at once
// CHECK: all_gather {"x"}
// CHECK-NEXT: for output "shifted": [{"x"}, {}] -> [{}, {}]
// CHECK-NEXT: because the annotation of "rows" at
// CHECK-NEXT: beside nothing: the step returns it as output "shifted" at once
dist.mesh @mesh <["x"=2]>
func.func @named(%a: tensor<8x2xf32> {nn.input = "rows", dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                 %w: tensor<2x2xf32> {nn.param = #nn.param<"w", init = ones>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x2xf32> {nn.output = "shifted", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, tensor<2x2xf32> {nn.output = "sum"}) {
  %0 = nn.relu %a : tensor<8x2xf32>
  %1 = dist.accumulate(%a) microbatches = 2 {
  ^bb0(%m: tensor<4x2xf32>):
    %2 = nn.matmul %m, %m {transpose_a} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
    %3 = nn.tanh %2 : tensor<2x2xf32>
    dist.yield %3 : tensor<2x2xf32>
  } : (tensor<8x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<8x2xf32>, tensor<2x2xf32>
}
