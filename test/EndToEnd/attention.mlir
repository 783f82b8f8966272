// Attention as real processes: heads that nothing divides (2 key/value heads with 3 query heads each, over up to 4 ranks), sharded either
// way, with data parallelism and a short last batch; promised bytes, workspace among them, are those counted. Sequences of 5.
// RUN: %python %support/plans.py %s --rows 23 --work %t/f64 --shoalc "--optimizer adamw --lr 0.01 --weight-decay 0.1 --clip-grad-norm 0.3 --grad-norm" \
// RUN:   '["data"=1, "tensor"=1, "group"=1]' '["data"=2, "tensor"=2, "group"=1]' '["data"=1, "tensor"=3, "group"=1]' \
// RUN:   '["data"=2, "tensor"=1, "group"=2]' '["data"=1, "tensor"=1, "group"=4]' '["data"=1, "tensor"=2, "group"=3]'

// With positions, which every device has whole, in no order and one of them without a row.
// RUN: sed -e 's/^  %o, %lse/  %row = nn.constant dense<[7, 2, -1, 0, 3]> : tensor<5xi64>\n&/' -e 's/ causal/ positions = %row, %row&/' \
// RUN:   -e '/nn.attention/s/) ->/, tensor<5xi64>, tensor<5xi64>&/' %s > %t.positions.mlir
// RUN: %python %support/plans.py %t.positions.mlir --rows 23 --work %t/positions --shoalc "--optimizer sgd --lr 0.1" \
// RUN:   '["data"=1, "tensor"=1, "group"=1]' '["data"=1, "tensor"=2, "group"=2]'

// RUN: sed 's/MESH/["data"=1, "tensor"=1, "group"=1]/' %s > %t.one.mlir
// RUN: shoalc %t.one.mlir --optimizer sgd --lr 0.1 --emit exec -o - | FileCheck %s
// One row each, with a workspace of its own.
// CHECK: exec.attention %{{.*}} into %[[O:.*]], %[[LSE:.*]] workspace %{{.*}} causal scale
// CHECK: exec.attention_grad %{{.*}}, %[[O]], %[[LSE]] into

dist.mesh @mesh <MESH>

func.func @model(
    %x:  tensor<10x120xf64> {nn.input = "x"},
    %y:  tensor<10xi64>   {nn.input = "y"},
    %wq: tensor<2x3x4xf64> {nn.param = #nn.param<"wq", init = uniform(-2.0, 2.0)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {"group"}, {}]>},
    %wk: tensor<2x4xf64> {nn.param = #nn.param<"wk", init = uniform(-2.0, 2.0)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %wv: tensor<2x4xf64> {nn.param = #nn.param<"wv", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
    %wo: tensor<2x3x4xf64> {nn.param = #nn.param<"wo", init = uniform(-1.0, 1.0)>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {"group"}, {}]>})
    -> (tensor<f64> {nn.loss}, tensor<10x4xf64> {nn.output = "logits"}) {
  %0 = nn.reshape %x : tensor<10x120xf64> -> tensor<10x5x2x3x4xf64>
  %1 = nn.reduce sum %0 dims = [3] : tensor<10x5x2x3x4xf64> -> tensor<10x5x2x4xf64>
  %q = nn.mul %0, %wq : (tensor<10x5x2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<10x5x2x3x4xf64>
  %k = nn.mul %1, %wk : (tensor<10x5x2x4xf64>, tensor<2x4xf64>) -> tensor<10x5x2x4xf64>
  %v = nn.mul %1, %wv : (tensor<10x5x2x4xf64>, tensor<2x4xf64>) -> tensor<10x5x2x4xf64>
  %o, %lse = nn.attention %q, %k, %v causal scale = 0.5 : (tensor<10x5x2x3x4xf64>, tensor<10x5x2x4xf64>, tensor<10x5x2x4xf64>) -> tensor<10x5x2x3x4xf64>
  %p = nn.mul %o, %wo : (tensor<10x5x2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<10x5x2x3x4xf64>
  %h = nn.reduce sum %p dims = [1, 2, 3] : tensor<10x5x2x3x4xf64> -> tensor<10x4xf64>
  %loss, %rows = nn.cross_entropy mean %h, %y : (tensor<10x4xf64>, tensor<10xi64>) -> tensor<f64>
  return %loss, %h : tensor<f64>, tensor<10x4xf64>
}
