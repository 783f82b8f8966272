// RUN: shoal-opt %s --dist-explain -o /dev/null 2>&1 | FileCheck %s

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
