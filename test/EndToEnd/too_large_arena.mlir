// What the runtime would refuse is no program: room in front of a bucket that no machine has.
// RUN: not shoalc %s -o %t 2>&1 | FileCheck %s
// CHECK: error: {{.*}}arena must be at most 70368744177664 bytes, which is what the runtime takes, got: 2305843009213694
func.func @a(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %0 = dist.pack %x[0:4] group 0 at 576460752303423488 : (tensor<4xf32>) -> tensor<4xf32>
  %1 = dist.pack %x[0:4] group 1 at 576460752303423488 : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
