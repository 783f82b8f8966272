// RUN: shoal-opt %s | shoal-opt | FileCheck %s
// RUN: shoal-opt %s --mlir-print-op-generic | shoal-opt | FileCheck %s

// Every op and attribute of the dialect prints as it is read.

// CHECK: dist.mesh @mesh <["data"=2, "tensor"=3, "one"=1], device_ids=[0, 3, 1, 4, 2, 5]>
dist.mesh @mesh <["data"=2, "tensor"=3, "one"=1], device_ids=[0, 3, 1, 4, 2, 5]>

// Open and closed dimensions, several axes, priorities, partial values.
// CHECK-LABEL: func.func @shardings
// CHECK-SAME: #dist.sharding<@mesh, [{"data"}, {"tensor", ?}p1]>
// CHECK-SAME: #dist.sharding<@mesh, [{"data", "tensor"}, {?}]>
// CHECK-SAME: #dist.sharding<@mesh, [{}, {"one"}p12], unreduced=max{"tensor", "data"}>
// CHECK-SAME: #dist.sharding<@mesh, []>
func.func @shardings(
    %a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}p0, {"tensor", ?}p1]>},
    %b: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"data", "tensor"}, {?}]>},
    %c: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"one"}p12], unreduced=max{"tensor", "data"}>})
    -> (tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>}) {
  %0 = nn.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @global
func.func @global(%x: tensor<8x4xf32>, %y: tensor<8xi64>) -> tensor<4xf32> {
  // CHECK: dist.reshard %{{.*}} <@mesh, [{}, {"tensor"}]> {reason = "by hand"} : tensor<8x4xf32>
  %0 = dist.reshard %x <@mesh, [{}, {"tensor"}]> {reason = "by hand"} : tensor<8x4xf32>
  // CHECK: %[[R:.*]]:2 = dist.accumulate(%{{.*}}, %{{.*}}) microbatches = 4 attributes {dist.id = 3 : i64} {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<2xi64>):
  %1:2 = dist.accumulate(%0, %y) microbatches = 4 attributes {dist.id = 3 : i64} {
  ^bb0(%xm: tensor<2x4xf32>, %ym: tensor<2xi64>):
    %sum = nn.reduce sum %xm dims = [0] : tensor<2x4xf32> -> tensor<4xf32>
    %count = nn.constant dense<1.0> : tensor<f32>
    // CHECK: dist.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<f32>
    dist.yield %sum, %count : tensor<4xf32>, tensor<f32>
  // CHECK: } : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<4xf32>, tensor<f32>)
  } : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<4xf32>, tensor<f32>)
  return %1#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @buckets
func.func @buckets(%a: tensor<10x10xf32>, %b: tensor<80xf32>) -> tensor<80xf32> {
  // CHECK: dist.pack %{{.*}}[0:100], %{{.*}}[0:50] group 0 at 0 : (tensor<10x10xf32>, tensor<80xf32>) -> tensor<150xf32>
  %0 = dist.pack %a[0:100], %b[0:50] group 0 at 0 : (tensor<10x10xf32>, tensor<80xf32>) -> tensor<150xf32>
  // CHECK: dist.pack %{{.*}}[50:80] group 0 at 150 {dist.id = 7 : i64} : (tensor<80xf32>) -> tensor<30xf32>
  %1 = dist.pack %b[50:80] group 0 at 150 {dist.id = 7 : i64} : (tensor<80xf32>) -> tensor<30xf32>
  // CHECK: dist.unpack %{{.*}}[100:150], %{{.*}}[0:30] : (tensor<150xf32>, tensor<30xf32>) -> tensor<80xf32>
  %2 = dist.unpack %0[100:150], %1[0:30] : (tensor<150xf32>, tensor<30xf32>) -> tensor<80xf32>
  return %2 : tensor<80xf32>
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<7x6xf32>, %s: tensor<3x6xf32>) {
  // CHECK: dist.all_reduce {"data", "tensor"} max %{{.*}} {reason = "r"} : tensor<7x6xf32>
  %0 = dist.all_reduce {"data", "tensor"} max %x {reason = "r"} : tensor<7x6xf32>
  // CHECK: dist.all_gather {"tensor"} dim = 0 %{{.*}} : tensor<3x6xf32> -> tensor<7x6xf32>
  %1 = dist.all_gather {"tensor"} dim = 0 %s : tensor<3x6xf32> -> tensor<7x6xf32>
  // CHECK: dist.reduce_scatter {"tensor"} sum dim = 0 %{{.*}} : tensor<7x6xf32> -> tensor<3x6xf32>
  %2 = dist.reduce_scatter {"tensor"} sum dim = 0 %x : tensor<7x6xf32> -> tensor<3x6xf32>
  // CHECK: dist.all_to_all {"tensor"} split = 1 concat = 0 %{{.*}} : tensor<3x6xf32> -> tensor<8x2xf32>
  %3 = dist.all_to_all {"tensor"} split = 1 concat = 0 %s : tensor<3x6xf32> -> tensor<8x2xf32>
  // CHECK: dist.all_slice {"tensor"} dim = 0 %{{.*}} : tensor<7x6xf32> -> tensor<3x6xf32>
  %4 = dist.all_slice {"tensor"} dim = 0 %x : tensor<7x6xf32> -> tensor<3x6xf32>
  // CHECK: dist.broadcast {"data"} root = 1 %{{.*}} : tensor<7x6xf32> -> tensor<7x6xf32>
  %5 = dist.broadcast {"data"} root = 1 %x : tensor<7x6xf32> -> tensor<7x6xf32>
  // CHECK: dist.scatter {"tensor"} root = 0 %{{.*}} : tensor<3x6xf32> -> tensor<1x6xf32>
  %6 = dist.scatter {"tensor"} root = 0 %s : tensor<3x6xf32> -> tensor<1x6xf32>
  // CHECK: dist.gather {"tensor"} root = 2 %{{.*}} : tensor<1x6xf32> -> tensor<3x6xf32>
  %7 = dist.gather {"tensor"} root = 2 %6 : tensor<1x6xf32> -> tensor<3x6xf32>
  // CHECK: dist.collective_permute {"tensor"} from [0, 1] to [1, 2] %{{.*}} : tensor<7x6xf32>
  %8 = dist.collective_permute {"tensor"} from [0, 1] to [1, 2] %x : tensor<7x6xf32>
  // CHECK: %[[F:.*]] = dist.permute_start {"one"} from [0] to [0] %{{.*}} : tensor<7x6xf32> -> !dist.future<tensor<7x6xf32>>
  %9 = dist.permute_start {"one"} from [0] to [0] %x : tensor<7x6xf32> -> !dist.future<tensor<7x6xf32>>
  // CHECK: dist.wait %[[F]] : !dist.future<tensor<7x6xf32>> -> tensor<7x6xf32>
  %10 = dist.wait %9 : !dist.future<tensor<7x6xf32>> -> tensor<7x6xf32>
  // CHECK: dist.barrier {"data"} {reason = "r"}
  dist.barrier {"data"} {reason = "r"}
  // CHECK: dist.barrier {"data"} {reason = #dist.reason<"operand 0 of nn.relu" in "h.3" moves "[{}]" because <"the batch of \22x\22" in "h.0" by "--strategy">, <"the annotation of \22w\22 at f.mlir:7:5">>}
  dist.barrier {"data"} {reason = #dist.reason<"operand 0 of nn.relu" in "h.3" moves "[{}]" because <"the batch of \22x\22" in "h.0" by "--strategy">, <"the annotation of \22w\22 at f.mlir:7:5">>}
  // CHECK: dist.barrier {"data"} {reason = #dist.reason<"a result">}
  dist.barrier {"data"} {reason = #dist.reason<"a result">}
  return
}

// CHECK-LABEL: func.func @point_to_point
func.func @point_to_point(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[O:.*]] = dist.axis_index {"data", "tensor"} * 8 : tensor<i64>
  %offset = dist.axis_index {"data", "tensor"} * 8 : tensor<i64>
  // CHECK: %[[P:.*]] = dist.axis_index {"data"} * 1 : index
  %peer = dist.axis_index {"data"} * 1 : index
  // CHECK: %[[G:.*]] = dist.group {
  %0 = dist.group {
    // CHECK: dist.send {"data"} %{{.*}} to %[[P]] : tensor<4xf32>
    dist.send {"data"} %x to %peer : tensor<4xf32>
    // CHECK: dist.recv {"data"} from %[[P]] : tensor<4xf32>
    %1 = dist.recv {"data"} from %peer : tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  // CHECK: } : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// What the partitioner leaves as tags.
// CHECK-LABEL: func.func @tags
// CHECK-SAME: dist.global = #dist.global<0, tensor<8xf32>, <@mesh, [{"data"}]>>
func.func @tags(%x: tensor<4xf32> {dist.global = #dist.global<0, tensor<8xf32>, <@mesh, [{"data"}]>>}) -> tensor<4xf32> {
  // CHECK: dist.globals = [#dist.global<5, tensor<8xf32>, <@mesh, [{"data"}]>>]
  %0 = nn.relu %x {dist.globals = [#dist.global<5, tensor<8xf32>, <@mesh, [{"data"}]>>]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Several tensors in one argument, whole ones and pieces of others; padded to divide. What a bucket holds a range of goes on in
// another; the range of all elements is not written.
// CHECK-LABEL: func.func @bucket_arguments
// CHECK-SAME: dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros, file = [12]>, tensor<4x3xf32>>, <#nn.param<"t", init = ones>, tensor<1x2xf32> of <1, tensor<1x6xf32>, <@mesh, [{}, {"tensor"}]>>>]>
// CHECK-SAME: dist.bucket = #dist.bucket<[<#nn.state<"w.m", of = "w", init = {{.*}}>, tensor<4x3xf32>>]>
// CHECK-SAME: dist.bucket = #dist.bucket<[<#nn.state<"t.m", of = "t", init = {{.*}}>, tensor<1x2xf32>[1:2] of <1, tensor<1x6xf32>, <@mesh, [{}, {"tensor"}]>>>]>
// CHECK-SAME: -> (tensor<8xf32> {dist.bucket = #dist.bucket<[<"w", tensor<5x3xf32>[0:12]>, <"t", tensor<3xf32>>]>
func.func @bucket_arguments(
    %p: tensor<7xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<0, tensor<14xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = zeros, file = [12]>, tensor<4x3xf32>>,
                                    #dist.member<#nn.param<"t", init = ones>, tensor<1x2xf32> of <1, tensor<1x6xf32>, <@mesh, [{}, {"tensor"}]>>>]>},
    %m: tensor<12xf32> {nn.state = #nn.state<"bucket.0.m", of = "bucket.0", init = 0.0>,
        dist.bucket = #dist.bucket<[<#nn.state<"w.m", of = "w", init = 0.0>, tensor<4x3xf32>>]>},
    %n: tensor<1xf32> {nn.state = #nn.state<"bucket.1.m", of = "bucket.0", init = 0.0>, dist.bucket = #dist.bucket<[
        <#nn.state<"t.m", of = "t", init = 0.0>, tensor<1x2xf32>[1:2] of <1, tensor<1x6xf32>, <@mesh, [{}, {"tensor"}]>>>]>})
    -> (tensor<8xf32> {nn.grad = "bucket.0", dist.bucket = #dist.bucket<[<"w", tensor<5x3xf32>[0:12]>, <"t", tensor<3xf32>[0:3]>]>,
                       dist.global = #dist.global<0, tensor<16xf32>, <@mesh, [{"data"}]>>}) {
  %0 = nn.constant dense<0.0> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
