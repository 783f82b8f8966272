// What the collectives do on all ranks, by hand-written L2 programs. Sizes that do not divide are padded:
// contents that a definition leaves open are NaN (integers: a loud number), so that a missing mask shows.
// RUN: shoal-opt %s -split-input-file --interpret="all-ranks" -o /dev/null | FileCheck %s

// 7 elements on 3 ranks are shards of 3, 3 and 1. Every rank of a column of the mesh is in its own group.
dist.mesh @mesh <["x"=3, "y"=2]>
func.func @shards() -> (tensor<3xf32>, tensor<7xf32>, tensor<3xf32>, tensor<3xi32>) {
  %7 = nn.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> : tensor<7xf32>
  %i7 = nn.constant dense<1> : tensor<7xi32>
  %slice = dist.all_slice {"x"} dim = 0 %7 : tensor<7xf32> -> tensor<3xf32>
  %gather = dist.all_gather {"x"} dim = 0 %slice : tensor<3xf32> -> tensor<7xf32>
  %scatter = dist.reduce_scatter {"x"} sum dim = 0 %7 : tensor<7xf32> -> tensor<3xf32>
  %ints = dist.reduce_scatter {"x"} sum dim = 0 %i7 : tensor<7xi32> -> tensor<3xi32>
  return %slice, %gather, %scatter, %ints : tensor<3xf32>, tensor<7xf32>, tensor<3xf32>, tensor<3xi32>
}
// CHECK: rank 0 result 0: {{.*}} [1, 2, 3]
// CHECK: rank 0 result 1: {{.*}} [1, 2, 3, 4, 5, 6, 7]
// CHECK: rank 0 result 2: {{.*}} [3, 6, 9]
// CHECK: rank 1 result 0: {{.*}} [1, 2, 3]
// CHECK: rank 2 result 0: {{.*}} [4, 5, 6]
// CHECK: rank 5 result 0: {{.*}} [7, 0, 0]
// CHECK: rank 5 result 1: {{.*}} [1, 2, 3, 4, 5, 6, 7]
// CHECK: rank 5 result 2: {{.*}} [21, nan, nan]
// CHECK: rank 5 result 3: {{.*}} [3, -1234567890, -1234567890]

// -----

// The order of axes is the order of members: {"y", "x"} counts y first.
dist.mesh @mesh <["x"=2, "y"=2]>
func.func @axis_order() -> (tensor<2xi64>, tensor<4xi64>, tensor<4xi64>) {
  %xy = dist.axis_index {"x", "y"} * 1 : tensor<i64>
  %yx = dist.axis_index {"y", "x"} * 10 : tensor<i64>
  %0 = nn.reshape %xy : tensor<i64> -> tensor<1xi64>
  %1 = nn.reshape %yx : tensor<i64> -> tensor<1xi64>
  %2 = dist.all_gather {"x"} dim = 0 %1 : tensor<1xi64> -> tensor<2xi64>
  %3 = dist.all_gather {"x", "y"} dim = 0 %0 : tensor<1xi64> -> tensor<4xi64>
  %4 = dist.all_gather {"y", "x"} dim = 0 %0 : tensor<1xi64> -> tensor<4xi64>
  return %2, %3, %4 : tensor<2xi64>, tensor<4xi64>, tensor<4xi64>
}
// CHECK: rank 1 result 0: {{.*}} [20, 30]
// CHECK: rank 1 result 1: {{.*}} [0, 1, 2, 3]
// CHECK: rank 1 result 2: {{.*}} [0, 2, 1, 3]

// -----

// Reductions are sum, max or min; on an axis of size 1 they change nothing.
dist.mesh @mesh <["x"=3, "one"=1]>
func.func @reductions() -> (tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 2 : tensor<i64>
  %0 = dist.all_reduce {"x"} sum %i : tensor<i64>
  %1 = dist.all_reduce {"x"} max %i : tensor<i64>
  %2 = dist.all_reduce {"x"} min %i : tensor<i64>
  %3 = dist.all_reduce {"one"} sum %i : tensor<i64>
  return %0, %1, %2, %3 : tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>
}
// CHECK: rank 2 result 0: {{.*}} [6]
// CHECK: rank 2 result 1: {{.*}} [4]
// CHECK: rank 2 result 2: {{.*}} [0]
// CHECK: rank 2 result 3: {{.*}} [4]

// -----

// all_to_all moves the sharding from one dimension to another: here the columns of a 3x2 matrix, one per rank, become rows.
dist.mesh @mesh <["x"=2]>
func.func @all_to_all() -> tensor<2x2xf32> {
  %m = nn.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %column = dist.all_slice {"x"} dim = 1 %m : tensor<3x2xf32> -> tensor<3x1xf32>
  %rows = dist.all_to_all {"x"} split = 0 concat = 1 %column : tensor<3x1xf32> -> tensor<2x2xf32>
  return %rows : tensor<2x2xf32>
}
// CHECK: rank 0 result 0: {{.*}} [1, 2, 3, 4]
// CHECK: rank 1 result 0: {{.*}} [5, 6, nan, nan]

// -----

// Rooted collectives, and permutations: zeros where nothing arrives.
dist.mesh @mesh <["x"=3]>
func.func @rooted() -> (tensor<i64>, tensor<1xi64>, tensor<3xi64>, tensor<i64>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 1 : tensor<i64>
  %ten = nn.constant dense<10> : tensor<i64>
  %mine = nn.add %i, %ten : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %0 = dist.broadcast {"x"} root = 1 %mine : tensor<i64> -> tensor<i64>
  %all = nn.broadcast %mine : tensor<i64> -> tensor<3xi64>
  %1 = dist.scatter {"x"} root = 2 %all : tensor<3xi64> -> tensor<1xi64>
  %one = nn.reshape %mine : tensor<i64> -> tensor<1xi64>
  %2 = dist.gather {"x"} root = 0 %one : tensor<1xi64> -> tensor<3xi64>
  %3 = dist.collective_permute {"x"} from [0, 1] to [1, 2] %mine : tensor<i64>
  %future = dist.permute_start {"x"} from [0, 1, 2] to [2, 0, 1] %mine : tensor<i64> -> !dist.future<tensor<i64>>
  dist.barrier {"x"}
  %4 = dist.wait %future : !dist.future<tensor<i64>> -> tensor<i64>
  return %0, %1, %2, %3, %4 : tensor<i64>, tensor<1xi64>, tensor<3xi64>, tensor<i64>, tensor<i64>
}
// CHECK: rank 0 result 0: {{.*}} [11]
// CHECK: rank 0 result 1: {{.*}} [12]
// CHECK: rank 0 result 2: {{.*}} [10, 11, 12]
// CHECK: rank 0 result 3: {{.*}} [0]
// CHECK: rank 0 result 4: {{.*}} [11]
// CHECK: rank 1 result 2: {{.*}} [0, 0, 0]
// CHECK: rank 1 result 3: {{.*}} [10]
// CHECK: rank 2 result 4: {{.*}} [10]

// -----

// Arguments and buckets: an argument is cut by dist.global, a bucket holds ranges of several tensors.
dist.mesh @mesh <["x"=2], device_ids = [1, 0]>
func.func @buckets(%w: tensor<2xf64> {nn.param = #nn.param<"w", init = constant(3.0)>,
                   dist.global = #dist.global<0, tensor<3xf64>, #dist.sharding<@mesh, [{"x"}]>>})
    -> (tensor<2xf64>, tensor<2x2xf64>) {
  %m = nn.constant dense<[[1.0, 2.0], [5.0, 6.0]]> : tensor<2x2xf64>
  %v = nn.constant dense<[7.0, 8.0]> : tensor<2xf64>
  %b0 = dist.pack %m[0:3] group 0 at 0 : (tensor<2x2xf64>) -> tensor<3xf64>
  %b1 = dist.pack %m[3:4], %v[0:2] group 0 at 3 : (tensor<2x2xf64>, tensor<2xf64>) -> tensor<3xf64>
  %r0 = dist.all_reduce {"x"} sum %b0 : tensor<3xf64>
  %r1 = dist.all_reduce {"x"} sum %b1 : tensor<3xf64>
  %sum = dist.unpack %r0[0:3], %r1[0:1] : (tensor<3xf64>, tensor<3xf64>) -> tensor<2x2xf64>
  return %w, %sum : tensor<2xf64>, tensor<2x2xf64>
}
// CHECK: rank 1 result 0: {{.*}} [3, 3]
// CHECK: rank 1 result 1: {{.*}} [2, 4, 10, 12]
// CHECK: rank 0 result 0: {{.*}} [3, nan]
