// Sums over axes that were partitioned first meet the reductions of the axes that came later.
// RUN: shoal-opt %s -split-input-file --dist-optimize-collectives="joint=context overlap=false" | FileCheck %s
// RUN: shoal-opt %s -split-input-file --dist-optimize-collectives="overlap=false" | FileCheck %s --check-prefix=APART

// A gradient that is cut lies in two buckets, and zeros pad: both are summed behind the packing, once for all axes.
dist.mesh @mesh <["data"=2, "context"=2]>
// CHECK-LABEL: @cut
// CHECK: %[[P:.*]] = dist.pack %arg0[0:4], %arg1[0:1] group 0
// CHECK-NEXT: %[[Q:.*]] = dist.pack %arg1[1:4], %{{.*}}[0:2] group 1
// CHECK-NEXT: dist.all_reduce {"data", "context"} sum %[[P]] {reason = "bucket 0; a; b"} : tensor<5xf32>
// CHECK-NEXT: %[[S:.*]] = dist.reduce_scatter {"data"} sum dim = 0 %[[Q]] {reason = "bucket 1"} : tensor<5xf32> -> tensor<3xf32>
// CHECK-NEXT: dist.all_reduce {"context"} sum %[[S]] {reason = "bucket 1; b"} : tensor<3xf32>
// CHECK-NEXT: return
// Without the option, as before.
// APART-LABEL: @cut
// APART: dist.all_reduce {"context"} sum %arg0
// APART: dist.all_reduce {"context"} sum %arg1
// APART: dist.all_reduce {"data"} sum
func.func @cut(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<5xf32>, tensor<3xf32>) {
  %zeros = nn.constant dense<0.0> : tensor<2xf32>
  %0 = dist.all_reduce {"context"} sum %a {reason = "a"} : tensor<4xf32>
  %1 = dist.all_reduce {"context"} sum %b {reason = "b"} : tensor<4xf32>
  %p = dist.pack %0[0:4], %1[0:1] group 0 at 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  %q = dist.pack %1[1:4], %zeros[0:2] group 1 at 0 : (tensor<4xf32>, tensor<2xf32>) -> tensor<5xf32>
  %2 = dist.all_reduce {"data"} sum %p {reason = "bucket 0"} : tensor<5xf32>
  %3 = dist.reduce_scatter {"data"} sum dim = 0 %q {reason = "bucket 1"} : tensor<5xf32> -> tensor<3xf32>
  return %2, %3 : tensor<5xf32>, tensor<3xf32>
}

// -----

// What else is read, is no sum, or has other axes stays apart: a part that is read elsewhere holds both of its buckets.
dist.mesh @mesh <["data"=2, "context"=2]>
// CHECK-LABEL: @apart
// CHECK-COUNT-2: dist.all_reduce {"context"} sum %arg
// CHECK: dist.all_reduce {"data"} sum
// CHECK: dist.all_reduce {"context"} max
// CHECK: dist.all_reduce {"data"} sum
// CHECK: dist.all_reduce {"data"} max
// CHECK: dist.all_reduce {"context"} max
func.func @apart(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce {"context"} sum %a {reason = "a"} : tensor<4xf32>
  %1 = dist.all_reduce {"context"} sum %b {reason = "b"} : tensor<4xf32>
  %p = dist.pack %0[0:4], %1[0:4] group 0 at 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = dist.all_reduce {"data"} sum %p {reason = "bucket"} : tensor<8xf32>
  %3 = dist.all_reduce {"context"} max %a {reason = "a maximum"} : tensor<4xf32>
  %4 = dist.all_reduce {"data"} sum %3 {reason = "of maxima"} : tensor<4xf32>
  %5 = dist.all_reduce {"data"} max %a {reason = "first over data"} : tensor<4xf32>
  %6 = dist.all_reduce {"context"} max %5 {reason = "then over context"} : tensor<4xf32>
  return %2, %1, %4, %6 : tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Masks of padding are the same on all devices along the axis, so that what they leave can be summed behind them; a mask
// that depends on the place along it is not.
dist.mesh @mesh <["data"=2, "context"=2, "tensor"=2]>
// CHECK-LABEL: @masked
// CHECK: %[[M:.*]] = nn.mask %arg0 dim = 0
// CHECK-NEXT: dist.all_reduce {"data", "context"} sum %[[M]]
// CHECK: %[[R:.*]] = dist.all_reduce {"context"} sum %arg0
// CHECK: %[[N:.*]] = nn.mask %[[R]]
// CHECK-NEXT: dist.all_reduce {"data"} sum %[[N]]
func.func @masked(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %limit = nn.constant dense<7> : tensor<i64>
  %0 = dist.all_reduce {"context"} sum %a {reason = "a"} : tensor<4xf32>
  %i = dist.axis_index {"tensor"} * 4 : tensor<i64>
  %1 = nn.mask %0 dim = 0 limit = %limit offset = %i fill = 0.0 : tensor<4xf32>
  %2 = dist.all_reduce {"data"} sum %1 {reason = "b"} : tensor<4xf32>
  %3 = dist.all_reduce {"context"} sum %a {dist.id = 3 : i64, reason = "c"} : tensor<4xf32>
  %j = dist.axis_index {"context"} * 4 : tensor<i64>
  %4 = nn.mask %3 dim = 0 limit = %limit offset = %j fill = 0.0 : tensor<4xf32>
  %5 = dist.all_reduce {"data"} sum %4 {reason = "d"} : tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
}
