// Gradients in flat buckets, each reduced by one reshard.
// RUN: shoal-opt %s --split-input-file --dist-pack | FileCheck %s
// RUN: shoal-opt %s --split-input-file --dist-pack=axes=tensor | FileCheck %s --check-prefix=TENSOR
// RUN: shoal-opt %s --split-input-file --dist-pack=bucket-mb=0.0002 | FileCheck %s --check-prefix=SMALL

// Gradients lie in the order in which they are ready; results and updates read them from the bucket.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: @gradients
// CHECK: %[[G2:.*]] = nn.reduce sum
// CHECK: %[[G1:.*]] = nn.matmul
// CHECK: %[[B:.*]] = dist.pack %[[G2]][0:10], %[[G1]][0:40] group 0 at 0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : (tensor<10xf32>, tensor<4x10xf32>) -> tensor<50xf32>
// CHECK-NEXT: %[[R:.*]] = dist.reshard %[[B]] <@mesh, [{}]> {{.*}}reason = "gradients of b, w are partial sums over {\22data\22}"
// CHECK-DAG: %[[U1:.*]] = dist.unpack %[[R]][10:50] {{.*}}-> tensor<4x10xf32>
// CHECK-DAG: %[[U2:.*]] = dist.unpack %[[R]][0:10] {{.*}}-> tensor<10xf32>
// CHECK: nn.sgd_update %{{.*}}, %[[U1]]
// CHECK: return %[[U1]], %[[U2]]

// 200 bytes in buckets of 209 are one; at 0.0001 MB they would be two.
// SMALL-LABEL: @gradients
// SMALL: dist.pack
// SMALL-NOT: dist.pack
// SMALL: return
func.func @gradients(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                     %y: tensor<8x10xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                     %w: tensor<4x10xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x10xf32> {nn.grad = "w"}, tensor<10xf32> {nn.grad = "b"}, tensor<4x10xf32>) {
  %b = nn.reduce sum %y dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x10xf32> -> tensor<10xf32>
  %g = nn.matmul %x, %y {transpose_a, dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<8x4xf32>, tensor<8x10xf32>) -> tensor<4x10xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %new = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0 : f64, dist.shardings = [#dist.sharding<@mesh, [{}, {}]>]} : tensor<4x10xf32>, tensor<f32>
  return %g, %b, %new : tensor<4x10xf32>, tensor<10xf32>, tensor<4x10xf32>
}

// -----

// A bucket may cut a tensor: ceil(800 / 209) buckets, cut where chunks of two devices are whole cache lines.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// SMALL-LABEL: @cut
// SMALL-DAG: dist.pack %[[G:.*]][0:64] group 0 at 0
// SMALL-DAG: dist.pack %[[G]][64:128] group 0 at 64
// SMALL-DAG: dist.pack %[[G]][128:192] group 0 at 128
// SMALL-DAG: dist.pack %[[G]][192:200] group 0 at 192
// SMALL: dist.unpack %{{.*}}[0:64], %{{.*}}[0:64], %{{.*}}[0:64], %{{.*}}[0:8]
func.func @cut(%x: tensor<8x200xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<200xf32> {nn.grad = "w"}) {
  %0 = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x200xf32> -> tensor<200xf32>
  return %0 : tensor<200xf32>
}

// -----

// A gradient that another one is computed from stays partial there, and is whole for everyone else.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: @one_from_another
// CHECK: %[[A:.*]] = nn.reduce
// CHECK: %[[B:.*]] = nn.neg %[[A]]
// CHECK: dist.pack %[[A]][0:4], %[[B]][0:4]
func.func @one_from_another(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<4xf32> {nn.grad = "a"}, tensor<4xf32> {nn.grad = "b"}) {
  %0 = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %1 = nn.neg %0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Types do not share a bucket; what is not partial, and the loss, stay out.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: @kinds
// CHECK-DAG: dist.pack %{{.*}}[0:4] group 0 at 0 {{.*}} -> tensor<4xf32>
// CHECK-DAG: dist.pack %{{.*}}[0:4] group 1 at 0 {{.*}} -> tensor<4xf64>
// CHECK-NOT: dist.pack
// CHECK: return
func.func @kinds(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %y: tensor<8x4xf64> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %z: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<f32> {nn.loss}, tensor<4xf32> {nn.grad = "a"}, tensor<4xf64> {nn.grad = "b"}, tensor<4xf32> {nn.grad = "c"}) {
  %l = nn.reduce sum %x dims = [0, 1] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<f32>
  %0 = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %1 = nn.reduce sum %y dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf64> -> tensor<4xf64>
  return %l, %0, %1, %z : tensor<f32>, tensor<4xf32>, tensor<4xf64>, tensor<4xf32>
}

// -----

// A truth value takes a byte of a bucket.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: @truth
// CHECK: dist.pack %{{.*}}[0:4] group 0 at 0 {{.*}} -> tensor<4xi1>
func.func @truth(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xi1> {nn.grad = "w"}) {
  %0 = nn.compare lt %a, %b {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

// What is partial over other axes, too, stays so over those: their pack comes later.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// TENSOR-LABEL: @both
// TENSOR: %[[B:.*]] = dist.pack %{{.*}}[0:10], %{{.*}}[0:4] group 0 at 0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data", "tensor"}>], exec.class = "workspace"}
// TENSOR-NEXT: dist.reshard %[[B]] <@mesh, [{}], unreduced=sum{"data"}> {{.*}}reason = "gradients of a, b are partial sums over {\22tensor\22}"
// TENSOR-DAG: dist.unpack %{{.*}}[0:10] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]}
// TENSOR-DAG: dist.unpack %{{.*}}[10:14] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]}
// TENSOR: return %{{.*}}, %{{.*}}, %[[C:.*]] : tensor<10xf32>, tensor<4xf32>, tensor<3xf32>
func.func @both(%x: tensor<8x10xf32> {dist.sharding = #dist.sharding<@mesh, [{"data", "tensor"}, {}]>},
                %y: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data", "tensor"}, {}]>},
                %z: tensor<8x3xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<10xf32> {nn.grad = "a"}, tensor<4xf32> {nn.grad = "b"}, tensor<3xf32> {nn.grad = "c"}) {
  %a = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data", "tensor"}>]} : tensor<8x10xf32> -> tensor<10xf32>
  %b = nn.reduce sum %y dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data", "tensor"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %c = nn.reduce sum %z dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x3xf32> -> tensor<3xf32>
  return %a, %b, %c : tensor<10xf32>, tensor<4xf32>, tensor<3xf32>
}

// -----

// A gradient that is gathered over other axes is packed before, as a shard, and so only once where the shard is a gradient, too.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: @gathered
// CHECK: %[[S:.*]] = nn.reduce sum
// CHECK: %[[B:.*]] = dist.pack %[[S]][0:8] group 0 at 0
// CHECK: %[[R:.*]] = dist.reshard %[[B]]
// CHECK: %[[U:.*]] = dist.unpack %[[R]][0:8]
// CHECK: %[[G:.*]] = dist.all_gather {"tensor"} dim = 0 %[[U]] {dist.shardings = [#dist.sharding<@mesh, [{}]>]
// CHECK-NOT: dist.pack
// CHECK: return %[[U]], %[[G]]
func.func @gathered(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<8xf32> {nn.grad = "a"}, tensor<16xf32> {nn.grad = "b"}) {
  %0 = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x8xf32> -> tensor<8xf32>
  %1 = dist.all_gather {"tensor"} dim = 0 %0 {reason = "r", dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8xf32> -> tensor<16xf32>
  return %0, %1 : tensor<8xf32>, tensor<16xf32>
}
