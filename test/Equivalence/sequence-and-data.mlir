// The sequence is sharded by hand. What is partial over it and over the rows of the batch is reduced over both at once:
// data parallelism in one all-reduce for each bucket, ZeRO in a reduce-scatter over data and an all-reduce of the shard;
// micro-batches leave the latter to the end of the step. Every plan means what one device does.
// DEFINE: %{mesh} =
// DEFINE: %{plan} =
// DEFINE: %{check} = sed 's/MESH/%{mesh}/' %s > %t.mlir && \
// DEFINE:   shoalc %t.mlir --verify-plan --optimizer adam %{plan} 2>&1 | FileCheck %s --check-prefix=EQUAL && \
// DEFINE:   shoalc %t.mlir --emit local --optimizer adam %{plan} -o %t.local.mlir
// EQUAL: the plan equals one device, --mode train

// REDEFINE: %{mesh} = "data"=2, "context"=3
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=DDP --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "context"=2, "data"=3
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ORDER --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=2, "context"=2
// REDEFINE: %{plan} = --bucket-mb 0.0001 --clip-grad-norm 0.1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=CUT --input-file=%t.local.mlir
// REDEFINE: %{plan} = --microbatches 2
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=PARTS --input-file=%t.local.mlir
// REDEFINE: %{plan} = --zero 1 --clip-grad-norm 0.1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ZERO1 --input-file=%t.local.mlir
// REDEFINE: %{plan} = --zero 1 --microbatches 2
// RUN: %{check}
// REDEFINE: %{plan} = --zero 2
// RUN: %{check}
// REDEFINE: %{plan} = --zero 2 --microbatches 4 --clip-grad-norm 0.1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ZERO2 --input-file=%t.local.mlir
// REDEFINE: %{plan} = --zero 3
// RUN: %{check}
// REDEFINE: %{plan} = --zero 3 --microbatches 2 --clip-grad-norm 0.1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ZERO3 --input-file=%t.local.mlir
// REDEFINE: %{plan} = --zero 2 --microbatches 2 --dtype bf16 --grad-dtype bf16 --bucket-mb 0.00005
// RUN: %{check}

// A mesh without data axes packs for the sequence; an axis of size 1 changes nothing.
// REDEFINE: %{plan} =
// REDEFINE: %{mesh} = "context"=4
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ALONE --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=1, "context"=4
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=ALONE --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "data"=3, "context"=1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=DATA --input-file=%t.local.mlir
// REDEFINE: %{mesh} = "replica"=2, "data"=2, "context"=2
// REDEFINE: %{plan} = --zero 2 --microbatches 2
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=REPLICA --input-file=%t.local.mlir

// Stages of a pipeline reduce their own.
// REDEFINE: %{mesh} = "data"=2, "context"=2, "pipe"=2
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=STAGES --input-file=%t.local.mlir
// REDEFINE: %{plan} = --microbatches 4 --clip-grad-norm 0.1
// RUN: %{check}

// The padding of a shard over tensor becomes 0 before it goes into a bucket, and is no reason to reduce apart.
// REDEFINE: %{mesh} = "data"=2, "context"=2, "tensor"=2
// REDEFINE: %{plan} = --tensor-parallel --zero 1 --clip-grad-norm 0.1
// RUN: %{check}
// RUN: FileCheck %s --check-prefix=MASKED --input-file=%t.local.mlir
// REDEFINE: %{plan} = --tensor-parallel --zero 3 --microbatches 2 --clip-grad-norm 0.1
// RUN: %{check}

// DDP-NOT: dist.all_reduce {"{{(data|context)}}"} sum
// DDP: dist.all_reduce {"data", "context"} {{.*}} : tensor<f64>
// DDP: %[[B:.*]] = dist.pack %{{.*}} : (tensor<7x3xf64>, tensor<5x7xf64>) -> tensor<56xf64>
// DDP-NEXT: dist.all_reduce {"data", "context"} sum %[[B]] {reason = #dist.reason<"gradients of w2, w1 are partial sums over {\22data\22, \22context\22}" moves "[{}] sum{\22context\22} -> [{}], then [{}] sum{\22data\22} -> [{}]" because <"the batch of \22x\22" by "data parallelism">, <"the annotation of \22x\22 at {{.*}}">>}
// DDP-NOT: dist.all_reduce

// ORDER-COUNT-2: dist.all_reduce {"context", "data"} sum
// ORDER-NOT: dist.all_reduce

// ceil(448 / 104) buckets, and the loss.
// CUT-COUNT-6: dist.all_reduce {"data", "context"} sum
// CUT-NOT: dist.all_reduce

// PARTS: dist.accumulate
// PARTS-NOT: dist.all_reduce
// PARTS: dist.yield
// PARTS-COUNT-2: dist.all_reduce {"data", "context"} sum
// PARTS-NOT: dist.all_reduce

// ZERO1: %[[B:.*]] = dist.pack
// ZERO1-NEXT: %[[S:.*]] = dist.reduce_scatter {"data"} sum dim = 0 %[[B]] {exec.class = "workspace", {{.*}} : tensor<56xf64> -> tensor<28xf64>
// ZERO1-NEXT: dist.all_reduce {"context"} sum %[[S]] {exec.class = "workspace", reason = #dist.reason<"gradients of w2, w1" moves "[{\22data\22}] sum{\22context\22} -> [{\22data\22}]" because <"the annotation of \22x\22 at {{.*}}">>} : tensor<28xf64>
// The norm of shards.
// ZERO1: dist.all_reduce {"data"} {{.*}} : tensor<f64>
// ZERO1-NOT: dist.all_reduce

// ZERO2: %[[SUMS:.*]]:2 = dist.accumulate
// ZERO2-NOT: dist.all_reduce
// ZERO2: %[[S:.*]] = dist.reduce_scatter {"data"} sum
// ZERO2: dist.yield %{{.*}}, %[[S]] : tensor<f64>, tensor<28xf64>
// ZERO2: dist.all_reduce {"context"} sum %[[SUMS]]#1 {exec.class = "grad"

// ZERO3: dist.accumulate
// ZERO3-NOT: dist.all_reduce
// ZERO3-COUNT-2: dist.reduce_scatter {"data"}
// ZERO3-NOT: dist.all_reduce
// ZERO3: dist.yield
// ZERO3-COUNT-2: dist.all_reduce {"context"} sum %{{.*}} {exec.class = "grad"

// ALONE-COUNT-2: dist.all_reduce {"context"} sum
// ALONE-NOT: dist.all_reduce

// DATA-NOT: {{[{]}}"context"
// DATA-COUNT-2: dist.all_reduce {"data"} sum
// DATA-NOT: dist.all_reduce

// REPLICA: dist.accumulate
// REPLICA-NOT: dist.all_reduce
// REPLICA: dist.reduce_scatter {"data"} sum
// REPLICA-NOT: dist.all_reduce
// REPLICA: dist.yield
// REPLICA: dist.all_reduce {"replica", "context"} sum

// STAGES-COUNT-2: dist.reduce_scatter {"data"} sum
// STAGES-NOT: dist.reduce_scatter
// STAGES: dist.all_reduce {"context"} sum
// STAGES-NOT: dist.reduce_scatter

// MASKED: %[[M:.*]] = nn.mask %{{.*}} : tensor<5x4xf64>
// MASKED-NEXT: %[[B:.*]] = dist.pack %{{.*}}, %[[M]][0:20] group 0
// MASKED-NEXT: %[[S:.*]] = dist.reduce_scatter {"data"} sum dim = 0 %[[B]]
// MASKED-NEXT: dist.all_reduce {"context"} sum %[[S]]

dist.mesh @mesh <[MESH]>
func.func @mlp(
    %x: tensor<4x6x5xf64> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{?}, {"context"}, {}]>},
    %y: tensor<4x6x3xf64> {nn.input = "y", dist.sharding = #dist.sharding<@mesh, [{?}, {"context"}, {}]>},
    %w1: tensor<5x7xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>},
    %w2: tensor<7x3xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>})
    -> (tensor<f64> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<4x6x5xf64>, tensor<5x7xf64>) -> tensor<4x6x7xf64>
  %1 = nn.tanh %0 : tensor<4x6x7xf64>
  %2 = nn.matmul %1, %w2 : (tensor<4x6x7xf64>, tensor<7x3xf64>) -> tensor<4x6x3xf64>
  %loss = nn.mse_loss mean %2, %y : (tensor<4x6x3xf64>, tensor<4x6x3xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}
