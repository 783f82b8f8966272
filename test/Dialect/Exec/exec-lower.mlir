// RUN: shoal-opt %s -split-input-file --exec-lower --exec-verify | FileCheck %s
// RUN: shoal-opt %s -split-input-file --exec-lower="overlap=false" --exec-verify | FileCheck %s --check-prefix=SERIAL

// The gradient is computed in its place in the bucket, reduced there on stream 1, and read from there: no copy.
// The loss, which nobody on stream 0 reads, is probed at the end.

dist.mesh @mesh <["data"=2]>

func.func private @k_mse(tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<4x2xf32>) attributes {exec.kernel}
func.func private @k_sum(tensor<4x2xf32>) -> (tensor<2xf32> {exec.unaligned}) attributes {exec.kernel}
func.func private @k_sgd(tensor<3x2xf32>, tensor<3x2xf32> {exec.unaligned}) -> tensor<3x2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
func.func private @k_sgd_b(tensor<2xf32>, tensor<2xf32> {exec.unaligned}) -> tensor<2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}

// CHECK: exec.program @linear train arena = {{[0-9]+}} rows = 8 bytes = <params = 32, grads = 32, optimizer = 0,
// CHECK: %w = exec.arg param "w" at 0 init = xavier_uniform
// CHECK: %b = exec.arg param "b" at 64 init = constant(1.000000e+00
// CHECK: %x = exec.arg input "x" at 128 global tensor<8x3xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : <4x3xf32>
// CHECK: %y = exec.arg input "y" at 192
// CHECK: exec.gemm %x, %w into %[[Z:.*]] m = 4 n = 2 k = 3 lda = 3 ldb = 2 ldc = 2 {name = "matmul x w"}
// CHECK: %[[T0:.*]] = exec.launch @k_mse ins(%[[Z]], %y
// CHECK: exec.wait %[[T0]] stream 1
// CHECK: exec.all_reduce {"data"} sum %[[L:.*]] to %[[L]] stream 1 {name = "all_reduce {data}", reason = "loss"}
// CHECK: %[[G:.*]] = exec.buffer grad at {{[0-9]+}} : <8xf32>
// CHECK: %[[GB:.*]] = exec.view %[[G]][0] : <8xf32> -> <2xf32>
// CHECK: exec.launch @k_sum ins(%{{.*}}) outs(%[[GB]]
// CHECK: %[[GW:.*]] = exec.view %[[G]][2] : <8xf32> -> <3x2xf32>
// CHECK: %[[T1:.*]] = exec.gemm %x, %{{.*}} into %[[GW]] m = 3 n = 2 k = 4 lda = 3 ldb = 2 ldc = 2 transpose_a
// CHECK: exec.wait %[[T1]] stream 1
// CHECK: %[[T2:.*]] = exec.all_reduce {"data"} sum %[[G]] to %[[G]] stream 1 {name = "all_reduce {data} bucket 0", reason = "gradients of b, w"}
// CHECK: exec.wait %[[T2]]{{$}}
// CHECK: exec.probe grad "w" %[[GW]]
// CHECK: exec.launch @k_sgd ins(%w, %[[GW]] : {{.*}}) inplace [0]
// CHECK: exec.launch @k_sgd_b ins(%b, %[[GB]] : {{.*}}) inplace [0]
// CHECK: exec.probe loss "loss" %[[L]]
// CHECK-NOT: exec.copy

// SERIAL: exec.program @linear
// SERIAL-NOT: exec.wait
// SERIAL-NOT: stream 1
// SERIAL: exec.all_reduce {"data"} sum %{{.*}} to %{{.*}} {name = "all_reduce {data}"
// SERIAL-NEXT: exec.probe loss
func.func @linear(%x: tensor<4x3xf32> {nn.input = "x", dist.global = #dist.global<0, tensor<8x3xf32>, #dist.sharding<@mesh, [{"data"}, {}]>>},
    %y: tensor<4x2xf32> {nn.input = "y", dist.global = #dist.global<1, tensor<8x2xf32>, #dist.sharding<@mesh, [{"data"}, {}]>>},
    %w: tensor<3x2xf32> {nn.param = #nn.param<"w", init = xavier_uniform>}, %b: tensor<2xf32> {nn.param = #nn.param<"b", init = ones>})
    -> (tensor<f32> {nn.loss}, tensor<3x2xf32> {nn.grad = "w"}, tensor<3x2xf32> {nn.updates = "w"}, tensor<2xf32> {nn.updates = "b"}) {
  %z = nn.matmul %x, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %0:2 = exec.call @k_mse(%z, %y) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<f32>, tensor<4x2xf32>)
  %loss = dist.all_reduce {"data"} sum %0#0 {reason = "loss"} : tensor<f32>
  %gb = exec.call @k_sum(%0#1) : (tensor<4x2xf32>) -> tensor<2xf32>
  %gw = nn.matmul %x, %0#1 {transpose_a} : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %p = dist.pack %gb[0:2], %gw[0:6] group 0 at 0 : (tensor<2xf32>, tensor<3x2xf32>) -> tensor<8xf32>
  %r = dist.all_reduce {"data"} sum %p {reason = "gradients of b, w"} : tensor<8xf32>
  %ub = dist.unpack %r[0:2] : (tensor<8xf32>) -> tensor<2xf32>
  %uw = dist.unpack %r[2:8] : (tensor<8xf32>) -> tensor<3x2xf32>
  %nw = exec.call @k_sgd(%w, %uw) : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %nb = exec.call @k_sgd_b(%b, %ub) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %loss, %uw, %nw, %nb : tensor<f32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<2xf32>
}

// -----

// A gradient that somebody reads after its bucket was reduced, and one that two buckets hold, are copied; so is
// what an unprepared kernel reads from an unaligned place.

dist.mesh @mesh <["data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
func.func private @k_add(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
// CHECK: exec.program @copies
// CHECK: exec.launch @k ins(%x : {{.*}}) outs(%[[G:.*]] :
// CHECK: exec.copy %[[G]] to %[[V:.*]] {name = "pack"}
// CHECK: exec.copy %[[G]] to %[[V1:.*]] {name = "pack"}
// CHECK: exec.all_reduce {"data"} sum %[[B:.*]] to %[[B]] stream 1
// CHECK: exec.copy %[[V1]] to %[[A:.*]] {name = "align"}
// CHECK: exec.launch @k_add ins(%[[G]], %[[A]]
func.func @copies(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<2xf32> {nn.output = "y"}) {
  %g = exec.call @k(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %p = dist.pack %g[0:2], %g[0:2] group 0 at 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %r = dist.all_reduce {"data"} sum %p : tensor<4xf32>
  %u = dist.unpack %r[2:4] : (tensor<4xf32>) -> tensor<2xf32>
  %y = exec.call @k_add(%g, %u) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// An all-reduce leaves its operand alone when it is an argument, or read later.

dist.mesh @mesh <["data"=2]>
func.func private @k_add(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
// CHECK: exec.program @kept
// CHECK: exec.all_reduce {"data"} sum %x to %[[R:[0-9]+]]
// CHECK: exec.launch @k_add ins(%x, %[[R]]
// CHECK: exec.all_reduce {"data"} max %[[S:.*]] to %[[M:[0-9]+]]
// CHECK: exec.launch @k_add ins(%[[S]], %[[M]]
func.func @kept(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<2xf32> {nn.output = "y"}) {
  %r = dist.all_reduce {"data"} sum %x : tensor<2xf32>
  %s = exec.call @k_add(%x, %r) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %m = dist.all_reduce {"data"} max %s : tensor<2xf32>
  %y = exec.call @k_add(%s, %m) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// Products: rows of all batches against one b are one product, so are summed batches of transposed a; others
// add up.

// CHECK: exec.program @products
// CHECK: exec.gemm %x, %w into %{{.*}} m = 6 n = 5 k = 4 lda = 4 ldb = 5 ldc = 5 {
// CHECK: exec.gemm %x, %[[Y:.*]] into %{{.*}} m = 4 n = 5 k = 6 lda = 4 ldb = 5 ldc = 5 transpose_a
// CHECK: exec.gemm %x, %[[Y]] into %{{.*}} m = 4 n = 5 k = 3 lda = 4 ldb = 5 ldc = 5 batch = 2 strides = [12, 15, 20] transpose_a
// CHECK: exec.gemm %{{.*}}, %{{.*}} into %[[S:.*]] m = 3 n = 4 k = 5 lda = 5 ldb = 5 ldc = 4 transpose_b {
// CHECK: exec.gemm %{{.*}}, %{{.*}} into %[[S]] m = 3 n = 4 k = 5 lda = 5 ldb = 5 ldc = 4 transpose_b accumulate
func.func @products(%x: tensor<2x3x4xf32> {nn.input = #nn.input<"x", unbatched>}, %w: tensor<4x5xf32> {nn.param = #nn.param<"w", init = zeros>},
    %v: tensor<2x4x5xf32> {nn.param = #nn.param<"v", init = zeros>})
    -> (tensor<4x5xf32> {nn.output = "a"}, tensor<2x4x5xf32> {nn.output = "b"}, tensor<3x4xf32> {nn.output = "c"}) {
  %y = nn.matmul %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  %a = nn.matmul %x, %y {transpose_a, sum_batch} : (tensor<2x3x4xf32>, tensor<2x3x5xf32>) -> tensor<4x5xf32>
  %b = nn.matmul %x, %y {transpose_a} : (tensor<2x3x4xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
  %c = nn.matmul %y, %v {transpose_b, sum_batch} : (tensor<2x3x5xf32>, tensor<2x4x5xf32>) -> tensor<3x4xf32>
  return %a, %b, %c : tensor<4x5xf32>, tensor<2x4x5xf32>, tensor<3x4xf32>
}

// -----

// Dimensions beside each other are one: a tensordot is one product, of transposed matrices or not.

// CHECK: exec.program @tensordots
// CHECK: exec.gemm %x, %w into %[[H:.*]] m = 6 n = 20 k = 4 lda = 4 ldb = 20 ldc = 20 {name = "tensordot x w"}
// CHECK: exec.gemm %[[H]], %w into %{{.*}} m = 6 n = 4 k = 20 lda = 20 ldb = 20 ldc = 4 transpose_b {
// CHECK: exec.gemm %x, %[[H]] into %{{.*}} m = 4 n = 20 k = 6 lda = 4 ldb = 20 ldc = 20 transpose_a {
func.func @tensordots(%x: tensor<2x3x4xf32> {nn.input = #nn.input<"x", unbatched>}, %w: tensor<4x5x2x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<2x3x4xf32> {nn.output = "y"}, tensor<4x5x2x2xf32> {nn.output = "g"}) {
  %h = nn.tensordot %x, %w axes = 1 : (tensor<2x3x4xf32>, tensor<4x5x2x2xf32>) -> tensor<2x3x5x2x2xf32>
  %y = nn.tensordot %h, %w axes = 3 {transpose_b} : (tensor<2x3x5x2x2xf32>, tensor<4x5x2x2xf32>) -> tensor<2x3x4xf32>
  %g = nn.tensordot %x, %h axes = 2 {transpose_a} : (tensor<2x3x4xf32>, tensor<2x3x5x2x2xf32>) -> tensor<4x5x2x2xf32>
  return %y, %g : tensor<2x3x4xf32>, tensor<4x5x2x2xf32>
}

// -----

// The gradient of a table is a library call; of bf16 it is summed in a workspace. What an input indexes and the shape of a
// parameter's files are said where the host reads them.

func.func private @k(%t: tensor<7x2xf32>, %i: tensor<3xi64>) -> tensor<3x2xf32> attributes {exec.kernel} {
  %0 = nn.embedding %t, %i : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
// CHECK: exec.program @embedding
// CHECK: %t = exec.arg param "t" at 0 init = constant(0.000000e+00, 0.000000e+00) file = [14] : <7x2xf32>
// CHECK: %i = exec.arg input "i" at {{[0-9]+}} indices = 20 : <3xi64>
// CHECK: %c = exec.arg input "c" at {{[0-9]+}} indices = 4 ignored = -1 : <2xi32>
// CHECK: exec.scatter_add %i, %{{.*}} into %{{.*}} {name = "embedding_grad i"} : <3xi64>, <3x2xf32> into <7x2xf32>
// CHECK: exec.scatter_add %c, %{{.*}} offset %o into %{{.*}} workspace %{{.*}} {name = "embedding_grad c b o"} : <2xi32>, <2x3xbf16> offset !exec.buffer<i64> into <5x3xbf16> workspace !exec.buffer<15xf32>
func.func @embedding(%t: tensor<7x2xf32> {nn.param = #nn.param<"t", init = zeros, file = [14]>},
    %i: tensor<3xi64> {nn.input = #nn.input<"i", unbatched>, nn.indices = #nn.indices<20>},
    %c: tensor<2xi32> {nn.input = #nn.input<"c", unbatched>, nn.indices = #nn.indices<4, ignored = -1>}, %b: tensor<2x3xbf16> {nn.input = #nn.input<"b", unbatched>},
    %o: tensor<i64> {nn.input = #nn.input<"o", unbatched>}, %l: tensor<2x4xf32> {nn.input = #nn.input<"l", unbatched>}, %lse: tensor<2xf32> {nn.input = #nn.input<"lse", unbatched>},
    %f: tensor<f32> {nn.input = #nn.input<"f", unbatched>})
    -> (tensor<7x2xf32> {nn.output = "g"}, tensor<5x3xbf16> {nn.output = "h"}, tensor<2x4xf32> {nn.output = "d"}) {
  %r = exec.call @k(%t, %i) : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  %g = nn.embedding_grad %i, %r : (tensor<3xi64>, tensor<3x2xf32>) -> tensor<7x2xf32>
  %h = nn.embedding_grad %c, %b offset = %o : (tensor<2xi32>, tensor<2x3xbf16>) -> tensor<5x3xbf16>
  %d = exec.call @k_ce(%l, %c, %lse, %f) : (tensor<2x4xf32>, tensor<2xi32>, tensor<2xf32>, tensor<f32>) -> tensor<2x4xf32>
  return %g, %h, %d : tensor<7x2xf32>, tensor<5x3xbf16>, tensor<2x4xf32>
}
func.func private @k_ce(%l: tensor<2x4xf32>, %c: tensor<2xi32>, %lse: tensor<2xf32>, %f: tensor<f32>) -> tensor<2x4xf32> attributes {exec.kernel} {
  %0 = nn.cross_entropy_grad %l, %c, %lse, %f ignore_index = -1 : (tensor<2x4xf32>, tensor<2xi32>, tensor<f32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Two parameters that trade places: both old values are kept first.

// CHECK: exec.program @swap infer
// CHECK: exec.copy %b to %[[B:.*]] {name = "keep"}
// CHECK: exec.copy %a to %[[A:.*]] {name = "keep"}
// CHECK: exec.copy %[[B]] to %a {name = "update"}
// CHECK: exec.copy %[[A]] to %b {name = "update"}
func.func @swap(%a: tensor<2xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<2xf32> {nn.param = #nn.param<"b", init = zeros>})
    -> (tensor<2xf32> {nn.updates = "a"}, tensor<2xf32> {nn.updates = "b"}) {
  return %b, %a : tensor<2xf32>, tensor<2xf32>
}

// -----

// A ring: every rank's peers, folded from its position.

dist.mesh @mesh <["data"=3]>
// CHECK: exec.program @ring
// CHECK: exec.point_to_point sends(%x : {{.*}}) to [array<i64: 1, 2, 0>] recvs(%{{.*}}) from [array<i64: 2, 0, 1>] stream 1
func.func @ring(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<2xf32> {nn.output = "y"}) {
  %me = dist.axis_index {"data"} * 1 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %n = arith.constant 3 : index
  %up = arith.addi %me, %one : index
  %next = arith.remui %up, %n : index
  %down = arith.addi %me, %two : index
  %last = arith.remui %down, %n : index
  %y = dist.group {
    dist.send {"data"} %x to %next : tensor<2xf32>
    %0 = dist.recv {"data"} from %last : tensor<2xf32>
    dist.yield %0 : tensor<2xf32>
  } : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// Every other collective, on chunks of dimension 0.

dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK: exec.program @collectives
// CHECK: exec.all_gather {"data"} %x to %[[G:[0-9]+]] stream 1
// CHECK: exec.reduce_scatter {"tensor"} sum %[[G]] to %[[S:[0-9]+]] stream 1
// CHECK: exec.all_to_all {"data"} %[[S]] to %[[A:[0-9]+]] stream 1
// CHECK: exec.broadcast {"data"} root = 1 %{{.*}} to %{{.*}} stream 1
// CHECK: exec.gather {"data"} root = 0
// CHECK: exec.scatter {"data"} root = 0
// CHECK: exec.permute {"data"} from [0, 1] to [1, 0]
// CHECK: exec.barrier {"data", "tensor"} stream 1
func.func @collectives(%x: tensor<2x4xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<1x8xf32> {nn.output = "y"}) {
  %0 = dist.all_gather {"data"} dim = 0 %x : tensor<2x4xf32> -> tensor<4x4xf32>
  %1 = dist.reduce_scatter {"tensor"} sum dim = 0 %0 : tensor<4x4xf32> -> tensor<2x4xf32>
  %2 = dist.all_to_all {"data"} split = 0 concat = 1 %1 : tensor<2x4xf32> -> tensor<1x8xf32>
  %3 = dist.broadcast {"data"} root = 1 %2 : tensor<1x8xf32> -> tensor<1x8xf32>
  %4 = dist.gather {"data"} root = 0 %3 : tensor<1x8xf32> -> tensor<2x8xf32>
  %5 = dist.scatter {"data"} root = 0 %4 : tensor<2x8xf32> -> tensor<1x8xf32>
  %f = dist.permute_start {"data"} from [0, 1] to [1, 0] %5 : tensor<1x8xf32> -> !dist.future<tensor<1x8xf32>>
  dist.barrier {"data", "tensor"}
  %6 = dist.wait %f : !dist.future<tensor<1x8xf32>> -> tensor<1x8xf32>
  return %6 : tensor<1x8xf32>
}

// -----

// A result says which dimension holds the batch; one that has as many rows by chance does not.

// CHECK: exec.program @outputs infer
// CHECK: exec.probe output "x" %x batch = 0 : <2x2xf32>
// CHECK: exec.probe output "w" %w : <2x2xf32>
func.func @outputs(%x: tensor<2x2xf32> {nn.input = "x"}, %w: tensor<2x2xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<2x2xf32> {nn.output = "x", nn.batch_dim = 0 : i64}, tensor<2x2xf32> {nn.output = "w"}) {
  return %x, %w : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// What a group hands out may be received, or come from outside; two names of one buffer are one buffer.

dist.mesh @mesh <["data"=2]>
func.func private @k_add(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
// CHECK: exec.program @handed
// CHECK: exec.point_to_point sends(%x : {{.*}}) to {{.*}} recvs(%[[R:.*]] : !exec.buffer<2xf32>)
// CHECK: exec.launch @k_add ins(%x, %[[R]]
// CHECK: exec.all_reduce {"data"} sum %[[R]] to %[[S:[0-9]+]] stream 1
func.func @handed(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<2xf32> {nn.output = "y"}, tensor<2xf32> {nn.output = "z"}) {
  %me = dist.axis_index {"data"} * 1 : index
  %one = arith.constant 1 : index
  %other = arith.subi %one, %me : index
  %a, %b, %c = dist.group {
    dist.send {"data"} %x to %other : tensor<2xf32>
    %0 = dist.recv {"data"} from %other : tensor<2xf32>
    dist.yield %x, %0, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  } : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  %y = exec.call @k_add(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %z = dist.all_reduce {"data"} sum %c : tensor<2xf32>
  return %y, %z : tensor<2xf32>, tensor<2xf32>
}

// -----

// A buffer lies with the parameters and counts as one: 16 + 16 bytes; its update is written in its place.

func.func private @k_average(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}

func.func private @k_shrink(tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}

// CHECK: exec.program @statistics {{.*}} <params = 32, grads = 0, optimizer = 16,
// CHECK: exec.arg buffer "bn.mean" at 0 init = constant(2.500000e-01
// CHECK: exec.arg param "p" at 64
// CHECK: exec.arg state "p.m" of "p" at 128
func.func @statistics(%s: tensor<4xf32> {nn.state = #nn.state<"p.m", of = "p", init = 0.0>},
    %m: tensor<4xf32> {nn.buffer = #nn.buffer<"bn.mean", init = 0.25>},
    %p: tensor<4xf32> {nn.param = #nn.param<"p", init = zeros>})
    -> (tensor<4xf32> {nn.updates = "bn.mean"}, tensor<4xf32> {nn.updates = "p"}, tensor<4xf32> {nn.updates = "p.m"}) {
  %0 = exec.call @k_average(%m, %p) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = exec.call @k_average(%p, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = exec.call @k_shrink(%s) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Who runs a group of messages runs what is in it: nobody else has a peer, or needs what it sends.
dist.mesh @mesh <["data"=3]>
// CHECK: exec.program @forward
// CHECK: exec.point_to_point {{.*}} {exec.at = array<i64: 0>
// CHECK: exec.point_to_point {{.*}}to {{.*}}array<i64: -1, 2, -1>{{.*}}exec.at = array<i64: 1>
func.func @forward(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>}) {
  %me = dist.axis_index {"data"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %next = arith.addi %me, %one : index
  dist.send {"data"} %x to %next {dist.at = array<i64: 0>} : tensor<2xf32>
  %0 = dist.recv {"data"} from %zero {dist.at = array<i64: 1>} : tensor<2xf32>
  dist.group {
    dist.send {"data"} %0 to %next : tensor<2xf32>
    dist.yield
  } {dist.at = array<i64: 1>}
  %1 = dist.recv {"data"} from %one {dist.at = array<i64: 2>} : tensor<2xf32>
  return
}
