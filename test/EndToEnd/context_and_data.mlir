// The sequence is sharded by hand over the context axis, together with the batch over data, as real processes: sizes that
// nothing divides, parameters and gradients of a mean over rows and tokens, clipping, micro-batches, ZeRO.
// RUN: %python %support/plans.py %s --rows 11 --work %t/adam --shoalc "--optimizer adamw --lr 0.01 --weight-decay 0.1 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1, "context"=1]' '["data"=1, "context"=3]' '["data"=2, "context"=2]' '["context"=2, "data"=2], device_ids=[2, 1, 3, 0]' \
// RUN:   '["data"=2, "context"=3] --zero 1' '["data"=2, "context"=2] --zero 2 --microbatches 2' '["data"=2, "context"=2] --zero 3' \
// RUN:   '["data"=2, "context"=2, "tensor"=2] --tensor-parallel --zero 1'
// RUN: %python %support/plans.py %s --rows 11 --work %t/sgd --shoalc "--optimizer sgd --lr 0.1 --momentum 0.9 --bucket-mb 0.0001" \
// RUN:   '["data"=1, "context"=1]' '["data"=3, "context"=2]' '["data"=2, "context"=2] --microbatches 2' '["data"=1, "context"=4]'

// Data parallelism over 2 x 3 devices: one all-reduce of the 64 elements of all gradients and one of the loss, 2 (N - 1)
// chunks of 11 and of 1. ZeRO-1: (N_d - 1) of N_d chunks of 32, twice with the gather of parameters, and 2 (N_c - 1) chunks of 11 of the
// shard.
// RUN: sed 's/MESH/["data"=2, "context"=3]/' %s > %t.mlir
// RUN: shoalc %t.mlir --optimizer sgd --report %t.json -o %t.exe && FileCheck %s --check-prefix=DDP --input-file=%t.json
// RUN: shoalc %t.mlir --optimizer sgd --zero 1 --report %t.json -o %t.exe && FileCheck %s --check-prefix=ZERO1 --input-file=%t.json
// DDP: "collectives": [
// DDP-NEXT: {
// DDP-NEXT: "kind": "all_reduce"
// DDP-NEXT: "axes"
// DDP: "count": 2,
// DDP-NEXT: "bytes": 960
// DDP-NEXT: }
// DDP-NEXT: ]
// ZERO1: "kind": "all_reduce"
// ZERO1: "bytes": 80
// ZERO1: "kind": "reduce_scatter"
// ZERO1: "count": 1
// ZERO1-NEXT: "bytes": 256
// ZERO1: "kind": "all_reduce"
// ZERO1: "count": 1
// ZERO1-NEXT: "bytes": 352
// ZERO1: "kind": "all_gather"
// ZERO1: "count": 1
// ZERO1-NEXT: "bytes": 256
// ZERO1-NEXT: }
// ZERO1-NEXT: ]

dist.mesh @mesh <MESH>

func.func @mlp(
    %x: tensor<5x7x5xf64> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{?}, {"context"}, {}]>},
    %t: tensor<5x7x3xf64> {nn.input = "t", dist.sharding = #dist.sharding<@mesh, [{?}, {"context"}, {}]>},
    %w1: tensor<5x7xf64> {nn.param = #nn.param<"w1", init = kaiming_uniform>},
    %b1: tensor<7xf64>   {nn.param = #nn.param<"b1", init = uniform(-0.1, 0.1)>},
    %w2: tensor<7x3xf64> {nn.param = #nn.param<"w2", init = kaiming_uniform>},
    %s2: tensor<1xf64>   {nn.param = #nn.param<"s2", init = ones>})
    -> (tensor<f64> {nn.loss}, tensor<5x7x3xf64> {nn.output = "out"}) {
  %0 = nn.matmul %x, %w1 : (tensor<5x7x5xf64>, tensor<5x7xf64>) -> tensor<5x7x7xf64>
  %1 = nn.add %0, %b1 : (tensor<5x7x7xf64>, tensor<7xf64>) -> tensor<5x7x7xf64>
  %2 = nn.tanh %1 : tensor<5x7x7xf64>
  %3 = nn.matmul %2, %w2 : (tensor<5x7x7xf64>, tensor<7x3xf64>) -> tensor<5x7x3xf64>
  %4 = nn.mul %3, %s2 : (tensor<5x7x3xf64>, tensor<1xf64>) -> tensor<5x7x3xf64>
  %loss = nn.mse_loss mean %4, %t : (tensor<5x7x3xf64>, tensor<5x7x3xf64>) -> tensor<f64>
  return %loss, %4 : tensor<f64>, tensor<5x7x3xf64>
}
