// RUN: shoal-opt %s -split-input-file --dist-expand-collectives --exec-outline-kernels --exec-lower --exec-verify | FileCheck %s

// Tensors in a bucket that is an argument are views of it, also where no kernel may read them aligned. What is gathered in place of
// the argument is received there: all that reads the old value comes before. The part of it that was updated is workspace, as asked.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @whole {{.*}} bytes = <params = 24, grads = 24, optimizer = 0, activations = {{[0-9]+}}, workspace = 24>
// CHECK: %bucket.0 = exec.arg param "bucket.0" at 0 init = constant(0.000000e+00{{.*}}) bucket = <[<#nn.param<"w", init = ones>, tensor<5xf32>>, <#nn.param<"c", init = zeros>, tensor<f32>>]> : <6xf32>
// CHECK-DAG: %[[W:.*]] = exec.view %bucket.0[0] : <6xf32> -> <5xf32>
// CHECK-DAG: %[[C:.*]] = exec.view %bucket.0[5] : <6xf32> -> <f32>
// CHECK-NOT: exec.copy
// CHECK: exec.reduce_scatter {"data"} sum %{{.*}} to %[[G:.*]] stream 1
// CHECK: exec.probe grad "bucket.0" %[[G]] global tensor<6xf32> sharding = <@mesh, [{"data"}]> bucket = <[<"w", tensor<5xf32>>, <"c", tensor<f32>>]>
// CHECK: exec.launch @{{.*}}sgd_update
// CHECK: exec.all_gather {"data"} %{{.*}} to %bucket.0 stream 1
// CHECK-NOT: exec.copy
func.func @whole(%x: tensor<5xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<6xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<1, tensor<6xf32>, <@mesh, [{}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = ones>, tensor<5xf32>>, <#nn.param<"c", init = zeros>, tensor<f32>>]>})
    -> (tensor<f32> {nn.loss}, tensor<6xf32> {nn.updates = "bucket.0"},
        tensor<3xf32> {nn.grad = "bucket.0", dist.global = #dist.global<2, tensor<6xf32>, <@mesh, [{"data"}]>>,
                       dist.bucket = #dist.bucket<[<"w", tensor<5xf32>>, <"c", tensor<f32>>]>}) {
  %w = dist.unpack %p[0:5] : (tensor<6xf32>) -> tensor<5xf32>
  %c = dist.unpack %p[5:6] : (tensor<6xf32>) -> tensor<f32>
  %a = nn.mul %x, %w : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %b = nn.mul %a, %c : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %loss = nn.reduce sum %b dims = [0] : tensor<5xf32> -> tensor<f32>
  %dw = nn.mul %x, %c : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>
  %dc = nn.reduce sum %a dims = [0] : tensor<5xf32> -> tensor<f32>
  %packed = dist.pack %dw[0:5], %dc[0:1] group 0 at 0 : (tensor<5xf32>, tensor<f32>) -> tensor<6xf32>
  %g = dist.reduce_scatter {"data"} sum dim = 0 %packed {exec.class = "workspace"} : tensor<6xf32> -> tensor<3xf32>
  %mine = dist.all_slice {"data"} dim = 0 %p : tensor<6xf32> -> tensor<3xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %new = nn.sgd_update %mine, %g lr = %lr {weight_decay = 0.0 : f64, exec.class = "workspace"} : tensor<3xf32>, tensor<f32>
  %all = dist.all_gather {"data"} dim = 0 %new : tensor<3xf32> -> tensor<6xf32>
  return %loss, %all, %g : tensor<f32>, tensor<6xf32>, tensor<3xf32>
}

// -----

// A part of the parameters, gathered for use and dropped: its update is in place, the gathered bucket is workspace.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @sharded {{.*}} bytes = <params = 12, grads = 12, optimizer = 0,
// CHECK: %bucket.0 = exec.arg param "bucket.0" at 0 global tensor<6xf32> sharding = <@mesh, [{"data"}]>
// CHECK: %[[ALL:.*]] = exec.buffer workspace at {{[0-9]+}} : <6xf32>
// CHECK: exec.all_gather {"data"} %bucket.0 to %[[ALL]]
// CHECK: exec.view %[[ALL]][0] : <6xf32> -> <5xf32>
// CHECK: %[[PACK:.*]] = exec.buffer workspace at {{[0-9]+}} : <6xf32>
// CHECK: %[[G:.*]] = exec.buffer grad at {{[0-9]+}} : <3xf32>
// CHECK: exec.reduce_scatter {"data"} sum %[[PACK]] to %[[G]]
// CHECK: exec.launch @{{.*}} ins(%bucket.0, %[[G]] : {{.*}}) inplace [0]
// CHECK-NOT: exec.copy
func.func @sharded(%x: tensor<5xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<3xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<1, tensor<6xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = ones>, tensor<5xf32>>]>})
    -> (tensor<3xf32> {nn.updates = "bucket.0"},
        tensor<3xf32> {nn.grad = "bucket.0", dist.global = #dist.global<2, tensor<6xf32>, <@mesh, [{"data"}]>>,
                       dist.bucket = #dist.bucket<[<"w", tensor<5xf32>>]>}) {
  %all = dist.all_gather {"data"} dim = 0 %p {exec.class = "workspace"} : tensor<3xf32> -> tensor<6xf32>
  %w = dist.unpack %all[0:5] : (tensor<6xf32>) -> tensor<5xf32>
  %dw = nn.mul %x, %w : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  %zero = nn.constant dense<0.0> : tensor<1xf32>
  %packed = dist.pack %dw[0:5], %zero[0:1] group 0 at 0 {exec.class = "workspace"} : (tensor<5xf32>, tensor<1xf32>) -> tensor<6xf32>
  %g = dist.reduce_scatter {"data"} sum dim = 0 %packed : tensor<6xf32> -> tensor<3xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %new = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<f32>
  return %new, %g : tensor<3xf32>, tensor<3xf32>
}

// -----

// Somebody reads the old parameters after the new ones are gathered: these are received elsewhere and copied at the end.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @read_later
// CHECK: exec.all_gather {"data"} %[[MINE:.*]] to %[[NEW:.*]] stream 1
// CHECK: exec.copy %[[NEW]] to %p {name = "update"}
func.func @read_later(%p: tensor<4xf32> {nn.param = #nn.param<"p", init = ones>})
    -> (tensor<4xf32> {nn.updates = "p"}, tensor<4xf32> {nn.output = "difference"}) {
  %mine = dist.all_slice {"data"} dim = 0 %p : tensor<4xf32> -> tensor<2xf32>
  %new = nn.neg %mine : tensor<2xf32>
  %all = dist.all_gather {"data"} dim = 0 %new : tensor<2xf32> -> tensor<4xf32>
  %d = nn.sub %all, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %all, %d : tensor<4xf32>, tensor<4xf32>
}

// -----

// What is fetched where it stands waits for what is computed before, though it needs none of it: else all that is ever fetched would
// be there from the first moment on.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @paced
// CHECK: %[[T:.*]] = exec.gemm
// CHECK: exec.wait %[[T]] stream 1
// CHECK: exec.all_gather {"data"} %p to %{{.*}} stream 1
func.func @paced(%x: tensor<4x4xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<2x4xf32> {nn.param = #nn.param<"p", init = ones>, dist.global = #dist.global<1, tensor<4x4xf32>, <@mesh, [{"data"}, {}]>>})
    -> (tensor<4x4xf32> {nn.output = "y"}) {
  %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %all = dist.all_gather {"data"} dim = 0 %p {dist.refetch} : tensor<2x4xf32> -> tensor<4x4xf32>
  %b = nn.matmul %a, %all : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// -----

// A value that lies in a bucket and is reduced for another reader too: not in place, since the bucket is reduced behind it.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @twice
// CHECK: %[[LIES:.*]] = exec.view %[[PACK:.*]][0] : <4xf32> -> <3xf32>
// CHECK: exec.launch @{{.*}}reduce{{.*}} outs(%[[LIES]]
// CHECK-NOT: exec.all_reduce {"data"} sum %[[LIES]] to %[[LIES]]
// CHECK: exec.all_reduce {"data"} sum %[[LIES]] to %[[WHOLE:[0-9]+]]
// CHECK-NOT: exec.all_reduce {"data"} sum %[[LIES]] to %[[LIES]]
// CHECK: exec.reduce_scatter {"data"} sum %[[PACK]]
func.func @twice(%x: tensor<4x3xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<2xf32> {nn.param = #nn.param<"bucket.0", init = zeros>, dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>,
        dist.bucket = #dist.bucket<[<#nn.param<"w", init = ones>, tensor<3xf32>>]>})
    -> (tensor<3xf32> {nn.output = "whole"}, tensor<2xf32> {nn.updates = "bucket.0"}) {
  %sum = nn.reduce sum %x dims = [0] : tensor<4x3xf32> -> tensor<3xf32>
  %zero = nn.constant dense<0.0> : tensor<1xf32>
  %packed = dist.pack %sum[0:3], %zero[0:1] group 0 at 0 {exec.class = "workspace"} : (tensor<3xf32>, tensor<1xf32>) -> tensor<4xf32>
  %whole = dist.all_reduce {"data"} sum %sum : tensor<3xf32>
  %g = dist.reduce_scatter {"data"} sum dim = 0 %packed : tensor<4xf32> -> tensor<2xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %new = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<2xf32>, tensor<f32>
  return %whole, %new : tensor<3xf32>, tensor<2xf32>
}
