// A local program on all ranks against the global one on one device, and what is said when they differ.
// RUN: split-file %s %t
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/global.mlir precision=program seed=5 steps=4" -o /dev/null
// GOOD: remark: the plan agrees with one device: 7 values and 2 results compared in each of 3 steps

// A program without a mesh runs on one device.
// RUN: shoal-opt %t/global.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null
// RUN: shoal-opt %t/alone.mlir --dist-verify-plan="reference=%t/alone.mlir" -o /dev/null

// Without the all-reduce of the gradient the update is the first op that differs.
// RUN: sed 's/%%w, %%reduced/%%w, %%grad/' %t/local.mlir > %t/no_reduction.mlir
// RUN: not shoal-opt %t/no_reduction.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REDUCTION
// REDUCTION: no_reduction.mlir:[[#]]:{{.*}} error: the plan differs from one device first at nn.sgd_update (dist.id 5): element [0, 0] on rank 0 is {{.*}}, one device has {{.*}} (step 0)
// REDUCTION: global.mlir:[[#]]:{{.*}} note: here on one device

// Values that differ in a late digit are shown with as many.
// RUN: sed 's/f32/f64/g' %t/global.mlir > %t/global64.mlir
// RUN: sed 's/f32/f64/g; s/dense<0.1>/dense<0.10000000001>/' %t/local.mlir > %t/late.mlir
// RUN: not shoal-opt %t/late.mlir --dist-verify-plan="reference=%t/global64.mlir tolerance=1e-13" -o /dev/null 2>&1 | FileCheck %s --check-prefix=LATE
// LATE-NOT: is [[SAME:[-0-9.e]+]], one device has [[SAME]] (step
// LATE: error: the plan differs from one device first at nn.sgd_update

// A mask that is missing lets padding into the sum: the partial gradient is NaN.
// RUN: sed 's/%%masked_x, %%masked_d/%%x, %%masked_d/' %t/local.mlir > %t/no_mask.mlir
// RUN: not shoal-opt %t/no_mask.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=MASK
// MASK: error: the plan differs from one device first at nn.matmul (dist.id 4): element [0, 0] over ranks 0, 1 together is nan, one device has

// What is wrong in no op but in a result is said of the result.
// RUN: sed 's/return %%loss_sum/return %%loss/' %t/local.mlir > %t/result.mlir
// RUN: not shoal-opt %t/result.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: error: the plan differs from one device first at result 0 (loss) of the function: the value on rank 0 is

// Programs that do not belong together are refused.
// RUN: sed 's/global<4, /global<44, /' %t/local.mlir > %t/id.mlir
// RUN: not shoal-opt %t/id.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ID
// ID: error: 'nn.matmul' is a piece of a value that the reference does not have, dist.id: 44
// RUN: sed 's/global<0, tensor<5x6xf32>/global<0, tensor<6x6xf32>/' %t/local.mlir > %t/argument.mlir
// RUN: not shoal-opt %t/argument.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// ARGUMENT: error: argument 0 of the plan is a piece of a 'tensor<6x6xf32>', the reference takes a 'tensor<5x6xf32>'
// RUN: not shoal-opt %t/local.mlir --dist-verify-plan -o /dev/null 2>&1 | FileCheck %s --check-prefix=REFERENCE
// REFERENCE: error: dist-verify-plan needs the L1 module (option reference)

//--- global.mlir
func.func @linear(%x: tensor<5x6xf32> {nn.input = "x"}, %y: tensor<5x3xf32> {nn.input = "y"},
                  %w: tensor<6x3xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<f32> {nn.loss}, tensor<6x3xf32> {nn.updates = "w"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %p = nn.matmul %x, %w {dist.id = 0} : (tensor<5x6xf32>, tensor<6x3xf32>) -> tensor<5x3xf32>
  %loss = nn.mse_loss sum %p, %y {dist.id = 1} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<f32>
  %d = nn.sub %p, %y {dist.id = 2} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %d2 = nn.mul %d, %two {dist.id = 3} : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %grad = nn.matmul %x, %d2 {transpose_a, dist.id = 4} : (tensor<5x6xf32>, tensor<5x3xf32>) -> tensor<6x3xf32>
  %new = nn.sgd_update %w, %grad lr = %lr {weight_decay = 0.0, dist.id = 5} : tensor<6x3xf32>, tensor<f32>
  return %loss, %new : tensor<f32>, tensor<6x3xf32>
}

//--- local.mlir
dist.mesh @mesh <["data"=2]>
func.func @linear(
    %x: tensor<3x6xf32> {nn.input = "x", dist.global = #dist.global<0, tensor<5x6xf32>, <@mesh, [{"data"}, {}]>>},
    %y: tensor<3x3xf32> {nn.input = "y", dist.global = #dist.global<1, tensor<5x3xf32>, <@mesh, [{"data"}, {}]>>},
    %w: tensor<6x3xf32> {nn.param = #nn.param<"w", init = zeros>, dist.global = #dist.global<2, tensor<6x3xf32>, <@mesh, [{}, {}]>>})
    -> (tensor<f32> {nn.loss, dist.global = #dist.global<0, tensor<f32>, <@mesh, []>>},
        tensor<6x3xf32> {nn.updates = "w", dist.global = #dist.global<1, tensor<6x3xf32>, <@mesh, [{}, {}]>>}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  %five = nn.constant dense<5> : tensor<i64>
  %off = dist.axis_index {"data"} * 3 : tensor<i64>
  %p = nn.matmul %x, %w {dist.globals = [#dist.global<0, tensor<5x3xf32>, <@mesh, [{"data"}, {}]>>]}
      : (tensor<3x6xf32>, tensor<6x3xf32>) -> tensor<3x3xf32>
  %masked_p = nn.mask %p dim = 0 limit = %five offset = %off fill = 0.0 : tensor<3x3xf32>
  %masked_y = nn.mask %y dim = 0 limit = %five offset = %off fill = 0.0 : tensor<3x3xf32>
  %masked_x = nn.mask %x dim = 0 limit = %five offset = %off fill = 0.0 : tensor<3x6xf32>
  %loss = nn.mse_loss sum %masked_p, %masked_y {dist.globals = [#dist.global<1, tensor<f32>, <@mesh, [], unreduced=sum{"data"}>>]}
      : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<f32>
  %loss_sum = dist.all_reduce {"data"} sum %loss {dist.globals = [#dist.global<1, tensor<f32>, <@mesh, []>>]} : tensor<f32>
  %d = nn.sub %p, %y {dist.globals = [#dist.global<2, tensor<5x3xf32>, <@mesh, [{"data"}, {}]>>]}
      : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %d2 = nn.mul %d, %two {dist.globals = [#dist.global<3, tensor<5x3xf32>, <@mesh, [{"data"}, {}]>>]}
      : (tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  %masked_d = nn.mask %d2 dim = 0 limit = %five offset = %off fill = 0.0 : tensor<3x3xf32>
  %grad = nn.matmul %masked_x, %masked_d {transpose_a, dist.globals = [#dist.global<4, tensor<6x3xf32>, <@mesh, [{}, {}], unreduced=sum{"data"}>>]}
      : (tensor<3x6xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
  %reduced = dist.all_reduce {"data"} sum %grad : tensor<6x3xf32>
  %new = nn.sgd_update %w, %reduced lr = %lr {weight_decay = 0.0, dist.globals = [#dist.global<5, tensor<6x3xf32>, <@mesh, [{}, {}]>>]}
      : tensor<6x3xf32>, tensor<f32>
  return %loss_sum, %new : tensor<f32>, tensor<6x3xf32>
}

// No mesh, and nothing else of the dist dialect: one device.
//--- alone.mlir
func.func @m(%w: tensor<4xf32> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.reduce sum %w dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
