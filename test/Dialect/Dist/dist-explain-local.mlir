// RUN: shoal-opt %s --split-input-file --dist-explain -o /dev/null 2>&1 | FileCheck %s
// RUN: shoal-opt %s --split-input-file --dist-explain 2>/dev/null | FileCheck %s --check-prefix=SAME

// A program by hand says its own reason; its author removes what it wrote.
// CHECK-LABEL: 2 collectives in @hand_written
// CHECK: all_to_all {"x"}, 2 ranks, tensor<4x2xf32>: 16 bytes
// CHECK-NEXT: for mine
// CHECK-NEXT: beside nothing: nn.relu reads it at once
// CHECK-NEXT: removed by the author of the program, who wrote it there
// CHECK: collective_permute {"x"}, 2 ranks, tensor<2x4xf32>: 32 bytes
// CHECK-NEXT: beside
dist.mesh @mesh <["x"=2]>
func.func @hand_written(%a: tensor<4x2xf32>) -> tensor<2x4xf32> {
  %0 = dist.all_to_all {"x"} split = 0 concat = 1 %a {reason = "mine"} : tensor<4x2xf32> -> tensor<2x4xf32>
  %1 = nn.relu %0 : tensor<2x4xf32>
  %2 = dist.collective_permute {"x"} from [0, 1] to [1, 0] %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// Loops are told as they run, of branches that which each rank takes; the program stays as it is.
// CHECK-LABEL: 4 collectives in @steps: one rank sends 64 bytes in a step
// CHECK: all_reduce {"x"}, 2 ranks, tensor<4xf32>: 16 bytes, 3 times: 48 bytes
// CHECK: all_reduce {"x"}, 2 ranks, tensor<4xf32>: 16 bytes
// CHECK-NEXT: for taken
// CHECK: all_reduce {"x"}: 4 times, 64 bytes
// SAME-LABEL: @steps
// SAME: scf.for
// SAME: scf.if
dist.mesh @mesh <["x"=2]>
func.func @steps(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %0 = scf.for %i = %zero to %three step %one iter_args(%sum = %a) -> (tensor<4xf32>) {
    %1 = dist.all_reduce {"x"} sum %sum {reason = "round"} : tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  %less = arith.cmpi ult, %one, %three : index
  %2 = scf.if %less -> tensor<4xf32> {
    %3 = dist.all_reduce {"x"} sum %0 {reason = "taken"} : tensor<4xf32>
    scf.yield %3 : tensor<4xf32>
  } else {
    %4 = dist.all_reduce {"x"} max %0 {reason = "left"} : tensor<4xf32>
    scf.yield %4 : tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}
