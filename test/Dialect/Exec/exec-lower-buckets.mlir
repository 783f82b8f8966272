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

// -----

// Buckets that are gathered side by side are the tensors they share, and the new value of an argument that holds them all is received
// there, each bucket when nobody reads the old elements in its place.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @side_by_side
// CHECK: %[[ALL:.*]] = exec.buffer workspace at {{[0-9]+}} : <8xf32>
// CHECK: %[[S0:.*]] = exec.view %[[ALL]][0] : <8xf32> -> <4xf32>
// CHECK: exec.all_gather {"data"} %a to %[[S0]] stream 1
// CHECK: %[[S1:.*]] = exec.view %[[ALL]][4] : <8xf32> -> <4xf32>
// CHECK: exec.all_gather {"data"} %b to %[[S1]] stream 1
// CHECK: exec.view %[[ALL]][1] : <8xf32> -> <6xf32>
// CHECK: %[[P0:.*]] = exec.view %p[0] : <8xf32> -> <4xf32>
// CHECK: exec.all_gather {"data"} %{{.*}} to %[[P0]] stream 1
// CHECK: %[[P1:.*]] = exec.view %p[4] : <8xf32> -> <4xf32>
// CHECK: exec.all_gather {"data"} %{{.*}} to %[[P1]] stream 1
// CHECK-NOT: exec.copy
// CHECK: exec.program @cut
func.func @side_by_side(%x: tensor<6xf32> {nn.input = #nn.input<"x", unbatched>},
    %a: tensor<2xf32> {nn.param = #nn.param<"a", init = zeros>, dist.global = #dist.global<1, tensor<4xf32>, <@mesh, [{"data"}]>>},
    %b: tensor<2xf32> {nn.param = #nn.param<"b", init = zeros>, dist.global = #dist.global<2, tensor<4xf32>, <@mesh, [{"data"}]>>},
    %p: tensor<8xf32> {nn.param = #nn.param<"p", init = ones>})
    -> (tensor<8xf32> {nn.updates = "p"}, tensor<6xf32> {nn.output = "y"}) {
  %g0 = dist.all_gather {"data"} dim = 0 %a {exec.class = "workspace"} : tensor<2xf32> -> tensor<4xf32>
  %g1 = dist.all_gather {"data"} dim = 0 %b {exec.class = "workspace"} : tensor<2xf32> -> tensor<4xf32>
  %all = dist.pack %g0[0:4], %g1[0:4] group 0 at 0 {exec.class = "workspace"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %w = dist.unpack %all[1:7] : (tensor<8xf32>) -> tensor<6xf32>
  %y = nn.mul %x, %w : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %p0 = dist.unpack %p[0:4] : (tensor<8xf32>) -> tensor<4xf32>
  %p1 = dist.unpack %p[4:8] : (tensor<8xf32>) -> tensor<4xf32>
  %s0 = dist.all_slice {"data"} dim = 0 %p0 : tensor<4xf32> -> tensor<2xf32>
  %n0 = nn.add %s0, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %w0 = dist.all_gather {"data"} dim = 0 %n0 : tensor<2xf32> -> tensor<4xf32>
  %s1 = dist.all_slice {"data"} dim = 0 %p1 : tensor<4xf32> -> tensor<2xf32>
  %n1 = nn.add %s1, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %w1 = dist.all_gather {"data"} dim = 0 %n1 : tensor<2xf32> -> tensor<4xf32>
  %new = dist.pack %w0[0:4], %w1[0:4] group 1 at 0 {exec.class = "param"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %new, %y : tensor<8xf32>, tensor<6xf32>
}

// -----

// A tensor that ends in another storage lies where most of it belongs, and what is left is copied, as soon as that storage is in use.

dist.mesh @mesh <["data"=2]>

// CHECK: %[[V:.*]] = exec.buffer grad at {{[0-9]+}} : <8xf32>
// CHECK: %[[HEAD:.*]] = exec.view %[[V]][0] : <8xf32> -> <6xf32>
// CHECK: exec.reduce_scatter {"data"} sum %[[HEAD]]
// CHECK-NOT: exec.copy
// CHECK: %[[TAIL:.*]] = exec.view %[[V]][6] : <8xf32> -> <2xf32>
// CHECK: exec.copy %[[TAIL]] to %{{.*}} {name = "pack"}
// CHECK: exec.gemm
// CHECK-NOT: exec.copy
func.func @cut(%x: tensor<8xf32> {nn.input = #nn.input<"x", unbatched>}, %y: tensor<2x2xf32> {nn.input = #nn.input<"y", unbatched>})
    -> (tensor<3xf32> {nn.output = "a"}, tensor<3xf32> {nn.output = "b"}, tensor<2x2xf32> {nn.output = "c"}) {
  %v = nn.mul %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %u = nn.reduce sum %x dims = [0] {keep_dims} : tensor<8xf32> -> tensor<1xf32>
  %p0 = dist.pack %v[0:6] group 0 at 0 : (tensor<8xf32>) -> tensor<6xf32>
  %a = dist.reduce_scatter {"data"} sum dim = 0 %p0 : tensor<6xf32> -> tensor<3xf32>
  %w = nn.slice %x dim = 0 start = 0 : tensor<8xf32> -> tensor<4xf32>
  %z = nn.mul %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = nn.matmul %y, %y : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %p1 = dist.pack %v[6:8], %z[0:4] group 1 at 0 : (tensor<8xf32>, tensor<4xf32>) -> tensor<6xf32>
  %b = dist.reduce_scatter {"data"} sum dim = 0 %p1 : tensor<6xf32> -> tensor<3xf32>
  return %a, %b, %c : tensor<3xf32>, tensor<3xf32>, tensor<2x2xf32>
}

// -----

// What a reduction has read is held until stream 0 knows that it has ended. Two may be under way when a third starts: stream 0 waits
// for the first. Where more would be in use than at the fullest row, here the last that computes, it waits for all but the latest.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @three_reductions
// CHECK: %[[FIRST:.*]] = exec.reduce_scatter {"data"} sum
// CHECK: exec.launch @{{.*}}neg
// CHECK-NOT: exec.wait %[[FIRST]]
// CHECK: %[[SECOND:.*]] = exec.reduce_scatter {"data"} sum
// CHECK: exec.launch @{{.*}}tanh
// CHECK: exec.wait %[[FIRST]]{{$}}
// CHECK-NOT: exec.wait %[[SECOND]]
// CHECK: %[[THIRD:.*]] = exec.reduce_scatter {"data"} sum
// CHECK: exec.wait %[[SECOND]]{{$}}
// CHECK-NOT: exec.wait %[[THIRD]]
// CHECK: exec.launch @{{.*}}exp
func.func @three_reductions(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    %y: tensor<64xf32> {nn.input = #nn.input<"y", unbatched>})
    -> (tensor<2xf32> {nn.output = "a"}, tensor<2xf32> {nn.output = "b"}, tensor<2xf32> {nn.output = "c"}, tensor<64xf32> {nn.output = "d"}) {
  %0 = nn.exp %x : tensor<4xf32>
  %1 = dist.pack %0[0:4] group 0 at 0 {exec.class = "workspace"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = dist.reduce_scatter {"data"} sum dim = 0 %1 : tensor<4xf32> -> tensor<2xf32>
  %3 = nn.neg %x : tensor<4xf32>
  %4 = dist.pack %3[0:4] group 1 at 0 {exec.class = "workspace"} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = dist.reduce_scatter {"data"} sum dim = 0 %4 : tensor<4xf32> -> tensor<2xf32>
  %6 = nn.tanh %x : tensor<4xf32>
  %7 = dist.pack %6[0:4] group 2 at 0 {exec.class = "workspace"} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = dist.reduce_scatter {"data"} sum dim = 0 %7 : tensor<4xf32> -> tensor<2xf32>
  %9 = nn.exp %y : tensor<64xf32>
  return %2, %5, %8, %9 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<64xf32>
}

// -----

// The latest may hold memory beyond the fullest row, but not what another micro-batch needs.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @next_microbatch
// CHECK: %[[ONLY:.*]] = exec.reduce_scatter {"data"} sum
// CHECK-NOT: exec.wait
// CHECK: exec.gemm
// CHECK-SAME: m = 2
// CHECK: exec.wait %[[ONLY]]{{$}}
// CHECK: exec.gemm
// CHECK-SAME: m = 8
func.func @next_microbatch(%x: tensor<2x8xf32> {nn.input = #nn.input<"x", unbatched>},
    %y: tensor<8x8xf32> {nn.input = #nn.input<"y", unbatched>})
    -> (tensor<8xf32> {nn.output = "a"}, tensor<2x8xf32> {nn.output = "b"}, tensor<8x8xf32> {nn.output = "c"}) {
  %1 = nn.reshape %x {dist.microbatch = 0 : i64} : tensor<2x8xf32> -> tensor<16xf32>
  %2 = dist.pack %1[0:16] group 0 at 0 {exec.class = "workspace"} : (tensor<16xf32>) -> tensor<16xf32>
  %3 = dist.reduce_scatter {"data"} sum dim = 0 %2 {dist.microbatch = 0 : i64} : tensor<16xf32> -> tensor<8xf32>
  %4 = nn.matmul %x, %y {dist.microbatch = 1 : i64} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %5 = nn.matmul %y, %y {dist.microbatch = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3, %4, %5 : tensor<8xf32>, tensor<2x8xf32>, tensor<8x8xf32>
}

// -----

// A new value that is packed of parts of the old one is no copy within it: what is read would be written already.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @swap
// CHECK-COUNT-2: {name = "pack"}
// CHECK: exec.copy %{{.*}} to %p {name = "update"}
func.func @swap(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<8xf32> {nn.param = #nn.param<"p", init = ones>}) -> (tensor<4xf32> {nn.output = "y"}, tensor<8xf32> {nn.updates = "p"}) {
  %a = dist.unpack %p[0:4] : (tensor<8xf32>) -> tensor<4xf32>
  %b = dist.unpack %p[4:8] : (tensor<8xf32>) -> tensor<4xf32>
  %y = nn.mul %x, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %r = dist.pack %b[0:4], %a[0:4] group 0 at 0 {exec.class = "param"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %y, %r : tensor<4xf32>, tensor<8xf32>
}

// -----

// A result that is a part of an argument is the old value, read before a kernel writes over it: unpacked in one step or
// in several, which together may be all of it. What is unpacked of a kernel's result is read behind that kernel.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @parts
// CHECK-DAG: %[[C:.*]] = exec.view %p[0] : <4xf32> -> <f32>
// CHECK-DAG: exec.probe metric "c" %[[C]]
// CHECK-DAG: %[[D:.*]] = exec.view %p[1] : <4xf32> -> <3xf32>
// CHECK-DAG: exec.probe output "d" %[[D]]
// CHECK: exec.launch @[[TANH:k_tanh.*]] ins(%x{{.*}} outs(%[[T:[0-9]+]]
// CHECK: exec.view %[[T]][2]
// CHECK-NEXT: exec.probe output "t"
// CHECK: exec.launch @k_sgd_update{{.*}} ins(%p, {{.*}} inplace [0]
// CHECK-NOT: exec.probe
func.func @parts(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<4xf32> {nn.param = #nn.param<"p", init = ones>})
    -> (tensor<f32> {nn.metric = "c"}, tensor<3xf32> {nn.output = "d"}, tensor<2xf32> {nn.output = "t"}, tensor<4xf32> {nn.updates = "p"}) {
  %c = dist.unpack %p[0:1] : (tensor<4xf32>) -> tensor<f32>
  %low = dist.unpack %p[0:2] : (tensor<4xf32>) -> tensor<2xf32>
  %high = dist.unpack %p[2:4] : (tensor<4xf32>) -> tensor<2xf32>
  %d = dist.unpack %low[1:2], %high[0:2] : (tensor<2xf32>, tensor<2xf32>) -> tensor<3xf32>
  %t = nn.tanh %x : tensor<4xf32>
  %half = dist.unpack %t[2:4] : (tensor<4xf32>) -> tensor<2xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %g = dist.all_reduce {"data"} sum %t : tensor<4xf32>
  %new = nn.sgd_update %p, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %c, %d, %half, %new : tensor<f32>, tensor<3xf32>, tensor<2xf32>, tensor<4xf32>
}

// -----

// So is what a group of messages hands out: who reads it reads the argument.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @handed
// CHECK: exec.probe output "old" %p
// CHECK: exec.launch @k_mul{{.*}} ins(%p, %x
// CHECK: exec.launch @k_sgd_update{{.*}} ins(%p, {{.*}} inplace [0]
func.func @handed(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<4xf32> {nn.param = #nn.param<"p", init = ones>})
    -> (tensor<4xf32> {nn.output = "old"}, tensor<4xf32> {nn.updates = "p"}, tensor<4xf32> {nn.output = "d"}) {
  %me = dist.axis_index {"data"} * 1 : index
  %one = arith.constant 1 : index
  %other = arith.subi %one, %me : index
  %old, %r = dist.group {
    dist.send {"data"} %x to %other : tensor<4xf32>
    %0 = dist.recv {"data"} from %other : tensor<4xf32>
    dist.yield %p, %0 : tensor<4xf32>, tensor<4xf32>
  } : tensor<4xf32>, tensor<4xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %new = nn.sgd_update %p, %r lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %all = dist.all_reduce {"data"} sum %r : tensor<4xf32>
  %d = nn.mul %old, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %old, %new, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A new value of an argument that does not begin its group is not computed in the argument, which is no longer than it.

dist.mesh @mesh <["data"=2]>

// CHECK: exec.program @behind
// CHECK: %[[G:.*]] = exec.buffer {{.*}} : <12xf32>
// CHECK: %[[NEW:.*]] = exec.view %[[G]][4] : <12xf32> -> <8xf32>
// CHECK: exec.copy %[[NEW]] to %p {name = "update"}
func.func @behind(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>},
    %p: tensor<8xf32> {nn.param = #nn.param<"p", init = ones>}) -> (tensor<8xf32> {nn.updates = "p"}) {
  %n = nn.neg %x : tensor<4xf32>
  %t = nn.tanh %x : tensor<4xf32>
  %r = dist.pack %n[0:4], %t[0:4] group 0 at 4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
