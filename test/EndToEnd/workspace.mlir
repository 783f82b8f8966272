// A kernel whose rows are too long for the stack gets workspace in the arena, is compiled with it, and computes with it:
// softmax of equal numbers is 1/n, so the loss is the mean of x.
// RUN: shoalc %s --emit exec -o - | FileCheck %s
// CHECK: exec.buffer workspace
// RUN: shoalc %s -o %t --report %t.promise.json
// RUN: %python -c "import sys; sys.path.insert(0, '%support'); from tensor_files import *; write_npy('%t.npy', tensor('f64', (4, 100000), [0.5] * 400000))"
// RUN: shoal-run -n 1 %t --no-progress --data x=%t.npy --steps 1 --metrics %t.jsonl --report %t.count.json
// RUN: %python -c "import json; l = json.loads(open('%t.jsonl').readline())['loss']; assert abs(l - 2.0) < 1e-9, l"
// RUN: %python -c "import sys; sys.path.insert(0, '%support'); from shoal import ranks_of_report as ranks; assert ranks('%t.promise.json') == ranks('%t.count.json')"

func.func @m(%x: tensor<4x100000xf64> {nn.input = "x"}, %w: tensor<100000xf64> {nn.param = #nn.param<"w", init = ones>})
    -> (tensor<f64> {nn.loss}) {
  %a = nn.mul %x, %w : (tensor<4x100000xf64>, tensor<100000xf64>) -> tensor<4x100000xf64>
  %s = nn.softmax %a dim = 1 : tensor<4x100000xf64>
  %q = nn.mul %s, %x : (tensor<4x100000xf64>, tensor<4x100000xf64>) -> tensor<4x100000xf64>
  %l = nn.reduce sum %q dims = [0, 1] : tensor<4x100000xf64> -> tensor<f64>
  return %l : tensor<f64>
}
