// 2^60 ways lead through squares of squares, which no stage says; pipe-split goes through each op once.
// RUN: shoal-opt %s --pipe-split | FileCheck %s
// CHECK: func.func private @step.stage1.forward
// CHECK-COUNT-60: nn.mul
dist.mesh @mesh <["pipe"=2]>
pipe.schedule @s placement = loop microbatches = 1 chunks = 1 ranks ["F0 SF0>1", "RF0<0 F0"]
func.func @step(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<4xf32> {nn.output = "y"}) {
  %y = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%part: tensor<4xf32>):
    %h = nn.tanh %part {pipe.stage = 0 : i64} : tensor<4xf32>
    %0 = nn.exp %h {pipe.stage = 1 : i64} : tensor<4xf32>
    %1 = nn.mul %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = nn.mul %1, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = nn.mul %2, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = nn.mul %3, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = nn.mul %4, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %6 = nn.mul %5, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %7 = nn.mul %6, %6 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %8 = nn.mul %7, %7 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = nn.mul %8, %8 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10 = nn.mul %9, %9 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %11 = nn.mul %10, %10 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = nn.mul %11, %11 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %13 = nn.mul %12, %12 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %14 = nn.mul %13, %13 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %15 = nn.mul %14, %14 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %16 = nn.mul %15, %15 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %17 = nn.mul %16, %16 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %18 = nn.mul %17, %17 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %19 = nn.mul %18, %18 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %20 = nn.mul %19, %19 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %21 = nn.mul %20, %20 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %22 = nn.mul %21, %21 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %23 = nn.mul %22, %22 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %24 = nn.mul %23, %23 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %25 = nn.mul %24, %24 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %26 = nn.mul %25, %25 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %27 = nn.mul %26, %26 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %28 = nn.mul %27, %27 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %29 = nn.mul %28, %28 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %30 = nn.mul %29, %29 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %31 = nn.mul %30, %30 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %32 = nn.mul %31, %31 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %33 = nn.mul %32, %32 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %34 = nn.mul %33, %33 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %35 = nn.mul %34, %34 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %36 = nn.mul %35, %35 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %37 = nn.mul %36, %36 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %38 = nn.mul %37, %37 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %39 = nn.mul %38, %38 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %40 = nn.mul %39, %39 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %41 = nn.mul %40, %40 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %42 = nn.mul %41, %41 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %43 = nn.mul %42, %42 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %44 = nn.mul %43, %43 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %45 = nn.mul %44, %44 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %46 = nn.mul %45, %45 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %47 = nn.mul %46, %46 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %48 = nn.mul %47, %47 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %49 = nn.mul %48, %48 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %50 = nn.mul %49, %49 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %51 = nn.mul %50, %50 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %52 = nn.mul %51, %51 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %53 = nn.mul %52, %52 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %54 = nn.mul %53, %53 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %55 = nn.mul %54, %54 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %56 = nn.mul %55, %55 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %57 = nn.mul %56, %56 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %58 = nn.mul %57, %57 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %59 = nn.mul %58, %58 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %60 = nn.mul %59, %59 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    dist.yield %60 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
