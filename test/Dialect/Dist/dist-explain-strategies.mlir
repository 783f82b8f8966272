// What strategies annotate is told in their words: data, tensor and sequence parallelism, beside an annotation by hand.
// RUN: shoal-opt %s --shoal-global="data-axes=data model-axes=tensor tensor-parallel=true optimizer=sgd" --shoal-local="data-axes=data model-axes=tensor" --dist-explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=TP
// RUN: shoal-opt %s --shoal-global="data-axes=data model-axes=tensor tensor-parallel=true sequence-parallel=true optimizer=sgd" --shoal-local="data-axes=data model-axes=tensor" --dist-explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=SP
// RUN: shoal-opt %s --shoal-global="data-axes=data model-axes=tensor tensor-parallel=true optimizer=sgd" --shoal-local="data-axes=data model-axes=tensor bucket-mb=0.0001" --dist-explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=BUCKETS
// RUN: sed 's/nn.param = #nn.param<"w[12]"/dist.sharding = #dist.sharding<@mesh, [{?}, {?}]>, &/; s/dist.sharding<@mesh, \[{?}, {?}\]>, nn.param = #nn.param<"w1"/dist.sharding<@mesh, [{}, {"tensor"}]>, nn.param = #nn.param<"w1"/' %s > %t.mlir
// RUN: shoal-opt %t.mlir --shoal-global="data-axes=data model-axes=tensor optimizer=sgd" --shoal-local="data-axes=data model-axes=tensor" --dist-explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=HAND
// An input that is embedded outside joins the stream without communication, and nobody is told of what a strategy wants.
// RUN: shoal-opt %s --shoal-global="data-axes=data model-axes=tensor tensor-parallel=true sequence-parallel=true optimizer=sgd" --shoal-local="data-axes=data model-axes=tensor" 2>&1 | FileCheck %s --check-prefix=EMBEDDED --implicit-check-not=remark
// EMBEDDED-LABEL: func.func @block
// EMBEDDED: dist.all_slice {"tensor"} dim = 1 %arg0 {reason = #dist.reason<"operand 0 of nn.mul" {{.*}}because <"the residual stream by sequence" by "--sequence-parallel">>}

dist.mesh @mesh <["data"=2, "tensor"=2]>

// TP-LABEL: collectives in @block
// What the forward and what the backward pass sends is told apart.
// TP: all_reduce {"tensor"}, 2 ranks, tensor<2x6x8xf32>: 384 bytes
// TP-NEXT: in the forward pass
// TP-NEXT: for operand {{[01]}} of nn.add in h.0: [{}, {}, {}] sum{"tensor"} -> [{}, {}, {}]
// TP-NEXT: because --tensor-parallel shards the columns of nn.tensordot in h.0
// TP-NEXT: beside nothing: nn.add reads it at once
// TP-NEXT: removed by leave out --tensor-parallel: what nn.tensordot combines lies on all ranks of {"tensor"}
// TP: all_reduce {"tensor"}, 2 ranks, tensor<2x6x8xf32>: 384 bytes
// TP-NEXT: in the backward pass
// TP-NEXT: for operand {{[01]}} of nn.add in h.0: [{}, {}, {}] sum{"tensor"} -> [{}, {}, {}]
// TP-NEXT: because --tensor-parallel shards the columns of nn.tensordot in h.0
// TP-NEXT: beside 1 op, 960 FLOP, until nn.add reads it
// TP-NEXT: removed by leave out --tensor-parallel: what nn.tensordot combines lies on all ranks of {"tensor"}
// TP: all_reduce {"data"}, 2 ranks, tensor<{{[0-9]+}}xf32>
// TP-NEXT: in the backward pass
// TP-NEXT: for gradients of
// TP-NEXT: because data parallelism shards the batch of "x"
// TP-NEXT: beside
// TP-NEXT: removed by a mesh without {"data"}: its ranks have rows of their own and the whole parameters
// TP: in total

// SP-LABEL: collectives in @block
// SP: all_gather {"tensor"}, 2 ranks, tensor<2x3x8xf32>: 192 bytes
// SP-NEXT: in the forward pass
// SP-NEXT: for the whole sequence for nn.tensordot in h.0: [{}, {"tensor"}, {}] -> [{}, {}, {}]
// SP-NEXT: because --sequence-parallel shards the residual stream by sequence
// SP-NEXT: beside
// SP-NEXT: removed by leave out --sequence-parallel: every rank of {"tensor"} would have all tokens
// SP: reduce_scatter {"tensor"}, 2 ranks, tensor<2x6x8xf32>: 192 bytes
// SP-NEXT: in the forward pass
// SP-NEXT: for the residual stream behind nn.tensordot in h.0: [{}, {}, {}] sum{"tensor"} -> [{}, {"tensor"}, {}]
// SP-NEXT: because --tensor-parallel shards the columns of nn.tensordot in h.0; --sequence-parallel shards the residual stream by sequence
// SP-NEXT: beside nothing: nn.add reads it at once
// SP-NEXT: removed by leave out --sequence-parallel: it would be an all-reduce, which sends twice as much
// SP: all_gather {"tensor"}, 2 ranks, tensor<2x3x8xf32>: 192 bytes
// SP-NEXT: in the backward pass
// SP: removed by --keep-gathered: what the forward pass gathered would be kept for the backward pass

// Buckets are told once, and where they begin and end.
// BUCKETS-LABEL: collectives in @block
// BUCKETS: all_reduce {"data"}, 2 ranks, tensor<{{[0-9]+}}xf32>: {{[0-9]+}} bytes, {{[0-9]+}} times: {{[0-9]+}} bytes
// BUCKETS-NEXT: in the backward pass
// BUCKETS-NEXT: for a bucket of gradients, the first: gradient{{.*}} of {{.*}}; the last: gradient{{.*}} of {{.*}}: [{}] sum{"data"} -> [{}]
// BUCKETS-NEXT: because data parallelism shards the batch of "x"

// By hand and by a strategy in one program: each collective names its own.
// HAND-LABEL: collectives in @block
// HAND: all_reduce {"tensor"}, 2 ranks, tensor<2x6x8xf32>: 384 bytes
// HAND-NEXT: in the forward pass
// HAND-NEXT: for
// HAND-NEXT: because the annotation of "w1" at {{.*}}.mlir:[[#@LINE+7]]:18
// HAND-NEXT: beside
// HAND-NEXT: removed by change the annotation of "w1"
// HAND: for gradients of
// HAND-NEXT: because data parallelism shards the batch of "x"
func.func @block(%x: tensor<4x6x8xf32> {nn.input = "x"}, %y: tensor<4x6x8xf32> {nn.input = "y"},
                 %g: tensor<8xf32> {nn.param = #nn.param<"g", init = ones>},
                 %w1: tensor<8x10xf32> {nn.param = #nn.param<"w1", init = zeros>},
                 %w2: tensor<10x8xf32> {nn.param = #nn.param<"w2", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.mul %x, %g : (tensor<4x6x8xf32>, tensor<8xf32>) -> tensor<4x6x8xf32>
  %1 = nn.tensordot %0, %w1 axes = 1 {nn.layer = "h.0"} : (tensor<4x6x8xf32>, tensor<8x10xf32>) -> tensor<4x6x10xf32>
  %2 = nn.relu %1 {nn.layer = "h.0"} : tensor<4x6x10xf32>
  %3 = nn.tensordot %2, %w2 axes = 1 {nn.layer = "h.0"} : (tensor<4x6x10xf32>, tensor<10x8xf32>) -> tensor<4x6x8xf32>
  %4 = nn.add %0, %3 {nn.layer = "h.0"} : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %loss = nn.mse_loss mean %4, %y : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
