// Buckets hold each element of a tensor once: said of arguments and of results, before anything is compared.
// RUN: split-file %s %t
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: remark: the plan agrees with one device: 0 values and 1 results compared

// Ranges that overlap hold the same, so no value is wrong.
// RUN: sed 's/tensor<8xf32>/tensor<6xf32>/g' %t/global.mlir > %t/global6.mlir
// RUN: sed 's/tensor<8xf32>/tensor<6xf32>/g; s/\[4:8\]/[2:6]/g' %t/local.mlir > %t/overlap.mlir
// RUN: not shoal-opt %t/overlap.mlir --dist-verify-plan="reference=%t/global6.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: the plan's buckets must hold each of the 6 elements of argument w once, got: [0:4] [2:6]

// Nor is it where both are the same range, of a tensor that has no more.
// RUN: sed 's/tensor<8xf32>/tensor<4xf32>/g' %t/global.mlir > %t/global4.mlir
// RUN: sed 's/tensor<8xf32>/tensor<4xf32>/g; s/\[4:8\]/[0:4]/g' %t/local.mlir > %t/twice.mlir
// RUN: not shoal-opt %t/twice.mlir --dist-verify-plan="reference=%t/global4.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: the plan's buckets must hold each of the 4 elements of argument w once, got: [0:4] [0:4]

// Elements that no bucket holds.
// RUN: sed 's/tensor<8xf32>/tensor<9xf32>/g' %t/global.mlir > %t/global9.mlir
// RUN: sed 's/tensor<8xf32>/tensor<9xf32>/g; s/\[4:8\]/[5:9]/g' %t/local.mlir > %t/gap.mlir
// RUN: not shoal-opt %t/gap.mlir --dist-verify-plan="reference=%t/global9.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GAP
// GAP: error: the plan's buckets must hold each of the 9 elements of argument w once, got: [0:4] [5:9]

// Results have ranges of their own.
// RUN: sed '/nn.grad/s/\[4:8\]/[0:4]/' %t/local.mlir > %t/result.mlir
// RUN: not shoal-opt %t/result.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: error: the plan's buckets must hold each of the 8 elements of nn.grad w once, got: [0:4] [0:4]

//--- global.mlir
func.func @f(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<8xf32> {nn.grad = "w"}) {
  %0 = nn.exp %w : tensor<8xf32>
  return %0 : tensor<8xf32>
}

//--- local.mlir
dist.mesh @mesh <["data"=2]>
func.func @f(
    %a: tensor<2xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = ones>, tensor<8xf32>[0:4]>]>},
    %b: tensor<2xf32> {nn.param = #nn.param<"bucket.1", init = zeros>, dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = ones>, tensor<8xf32>[4:8]>]>})
    -> (tensor<2xf32> {nn.grad = "bucket.0", dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{"data"}]>>, dist.bucket = #dist.bucket<[<"w", tensor<8xf32>[0:4]>]>},
        tensor<2xf32> {nn.grad = "bucket.1", dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>, dist.bucket = #dist.bucket<[<"w", tensor<8xf32>[4:8]>]>}) {
  %0 = nn.exp %a : tensor<2xf32>
  %1 = nn.exp %b : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
