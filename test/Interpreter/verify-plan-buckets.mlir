// A local program whose parameters, state and gradients lie in buckets, against the global one that knows none: arguments are put
// together from the members' whole tensors and cut, results the other way round. A tensor of the bucket is sharded over another axis.
// RUN: split-file %s %t
// RUN: shoal-opt %t/local.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=GOOD
// GOOD: remark: the plan agrees with one device: 0 values and 7 results compared in each of 3 steps
// RUN: shoal-opt %t/local.mlir --interpret="all-ranks=true" -o /dev/null | FileCheck %s --check-prefix=INTERPRET
// INTERPRET: step 0 rank 3 result 3 (gradient of bucket.0): tensor<6xf32>

// Without the sum over ranks the gradients differ, and the member is named.
// RUN: sed 's/reduce_scatter {"data"} sum dim = 0 %%packed/all_slice {"data"} dim = 0 %%packed/' %t/local.mlir > %t/no_sum.mlir
// RUN: not shoal-opt %t/no_sum.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: error: the plan differs from one device first at result 1 (new w) of the function: element [0, 0] on rank 0 is

// Padding that is filled would be counted in norms.
// RUN: sed 's/dense<0.0> : tensor<1xf32>/dense<1.0> : tensor<1xf32>/' %t/local.mlir > %t/padding.mlir
// RUN: not shoal-opt %t/padding.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PADDING
// PADDING: error: 'func.func' leaves padding of a bucket, result 0, that is not zero, at element 5 on rank 2

// Of another name there is nothing to compare with.
// RUN: sed 's/"b", init/"c", init/' %t/local.mlir > %t/name.mlir
// RUN: not shoal-opt %t/name.mlir --dist-verify-plan="reference=%t/global.mlir" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: the plan takes an argument that the reference does not: argument c

//--- global.mlir
func.func @step(%x: tensor<4x3xf32> {nn.input = "x"},
    %w: tensor<3x5xf32> {nn.param = #nn.param<"w", init = normal(0.0, 1.0)>}, %b: tensor<1x2xf32> {nn.param = #nn.param<"b", init = ones>},
    %wv: tensor<3x5xf32> {nn.state = #nn.state<"w.v", of = "w", init = 0.0>}, %bv: tensor<1x2xf32> {nn.state = #nn.state<"b.v", of = "b", init = 0.0>})
    -> (tensor<f32> {nn.loss}, tensor<3x5xf32> {nn.updates = "w"}, tensor<1x2xf32> {nn.updates = "b"},
        tensor<3x5xf32> {nn.updates = "w.v"}, tensor<1x2xf32> {nn.updates = "b.v"},
        tensor<3x5xf32> {nn.grad = "w"}, tensor<1x2xf32> {nn.grad = "b"}) {
  %o = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  %loss = nn.reduce sum %o dims = [0, 1] : tensor<4x5xf32> -> tensor<f32>
  %dw = nn.matmul %x, %o {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %xb = nn.slice %x dim = 1 start = 1 : tensor<4x3xf32> -> tensor<4x2xf32>
  %db0 = nn.reduce sum %xb dims = [0] {keep_dims} : tensor<4x2xf32> -> tensor<1x2xf32>
  %lr = nn.constant dense<0.01> : tensor<f32>
  %w2, %wv2 = nn.momentum_update %w, %dw, %wv lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<3x5xf32>, tensor<f32>
  %b2, %bv2 = nn.momentum_update %b, %db0, %bv lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<1x2xf32>, tensor<f32>
  return %loss, %w2, %b2, %wv2, %bv2, %dw, %db0 : tensor<f32>, tensor<3x5xf32>, tensor<1x2xf32>, tensor<3x5xf32>, tensor<1x2xf32>, tensor<3x5xf32>, tensor<1x2xf32>
}

//--- local.mlir
// Of w a device has 3x3 elements; the last column of the second one's is padding. With b these are 11, and one of the bucket.
dist.mesh @mesh <["data"=2, "tensor"=2]>
func.func @step(%x: tensor<2x3xf32> {nn.input = "x", dist.global = #dist.global<0, tensor<4x3xf32>, <@mesh, [{"data"}, {}]>>},
    %v: tensor<6xf32> {nn.state = #nn.state<"bucket.0.v", of = "bucket.0", init = 0.0>, dist.global = #dist.global<1, tensor<12xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.state<"w.v", of = "w", init = 0.0>, tensor<3x3xf32> of <3, tensor<3x5xf32>, <@mesh, [{}, {"tensor"}]>>>,
                                    <#nn.state<"b.v", of = "b", init = 0.0>, tensor<1x2xf32>>]>},
    %p: tensor<6xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<2, tensor<12xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = normal(0.0, 1.0)>, tensor<3x3xf32> of <1, tensor<3x5xf32>, <@mesh, [{}, {"tensor"}]>>>,
                                    <#nn.param<"b", init = ones>, tensor<1x2xf32>>]>})
    -> (tensor<6xf32> {nn.updates = "bucket.0.v", dist.global = #dist.global<0, tensor<12xf32>, <@mesh, [{"data"}]>>}, tensor<f32> {nn.loss},
        tensor<6xf32> {nn.updates = "bucket.0", dist.global = #dist.global<2, tensor<12xf32>, <@mesh, [{"data"}]>>},
        tensor<6xf32> {nn.grad = "bucket.0", dist.global = #dist.global<3, tensor<12xf32>, <@mesh, [{"data"}]>>,
            dist.bucket = #dist.bucket<[<"w", tensor<3x3xf32> of <5, tensor<3x5xf32>, <@mesh, [{}, {"tensor"}]>>>, <"b", tensor<1x2xf32>>]>}) {
  %all = dist.all_gather {"data"} dim = 0 %p : tensor<6xf32> -> tensor<12xf32>
  %w = dist.unpack %all[0:9] : (tensor<12xf32>) -> tensor<3x3xf32>
  %five = nn.constant dense<5> : tensor<i64>
  %first = dist.axis_index {"tensor"} * 3 : tensor<i64>
  %o = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %real = nn.mask %o dim = 1 limit = %five offset = %first fill = 0.0 : tensor<2x3xf32>
  %mine = nn.reduce sum %real dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
  %loss = dist.all_reduce {"data", "tensor"} sum %mine : tensor<f32>
  %dw = nn.matmul %x, %real {transpose_a} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
  %xb = nn.slice %x dim = 1 start = 1 : tensor<2x3xf32> -> tensor<2x2xf32>
  %db = nn.reduce sum %xb dims = [0] {keep_dims} : tensor<2x2xf32> -> tensor<1x2xf32>
  %pad = nn.constant dense<0.0> : tensor<1xf32>
  %packed = dist.pack %dw[0:9], %db[0:2], %pad[0:1] group 0 at 0 : (tensor<3x3xf32>, tensor<1x2xf32>, tensor<1xf32>) -> tensor<12xf32>
  %g = dist.reduce_scatter {"data"} sum dim = 0 %packed : tensor<12xf32> -> tensor<6xf32>
  %lr = nn.constant dense<0.01> : tensor<f32>
  %p2, %v2 = nn.momentum_update %p, %g, %v lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<6xf32>, tensor<f32>
  return %v2, %loss, %p2, %g : tensor<6xf32>, tensor<f32>, tensor<6xf32>, tensor<6xf32>
}
