// RUN: shoal-opt %s | shoal-opt | FileCheck %s
// RUN: shoal-opt %s --mlir-print-op-generic | shoal-opt | FileCheck %s

// Every op of a rank program prints as it is read.

dist.mesh @mesh <["data"=2, "tensor"=2]>

// CHECK: func.func private @k(tensor<8xf32>, tensor<8xf32> {exec.unaligned}) -> (tensor<8xf32>, tensor<f32> {exec.unaligned})
// CHECK-SAME: exec.inplace = array<i64: 0, -1>, exec.kernel, exec.workspace = 100
func.func private @k(%p: tensor<8xf32>, %g: tensor<8xf32> {exec.unaligned}) -> (tensor<8xf32>, tensor<f32> {exec.unaligned})
    attributes {exec.kernel, exec.inplace = array<i64: 0, -1>, exec.workspace = 100 : i64}

// CHECK: exec.call @k(%{{.*}}, %{{.*}}) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>)
func.func @step(%p: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<f32> {
  %0:2 = exec.call @k(%p, %g) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>)
  return %0#1 : tensor<f32>
}

// CHECK: exec.program @mlp train arena = 4096 rows = 16 bytes = <params = 32, grads = 0, optimizer = 32, activations = 512, workspace = 128>
exec.program @mlp train arena = 4096 rows = 16 bytes = <params = 32, grads = 0, optimizer = 32, activations = 512, workspace = 128> {
  // CHECK: %p = exec.arg param "p" at 0 init = uniform(-5.000000e-01, 5.000000e-01) : <8xf32>
  %p = exec.arg param "p" at 0 init = uniform(-0.5, 0.5) : !exec.buffer<8xf32>
  // CHECK: %p.m = exec.arg state "p.m" of "p" at 64 : <8xf32>
  %m = exec.arg state "p.m" of "p" at 64 : !exec.buffer<8xf32>
  // CHECK: %x = exec.arg input "x" at 128 global tensor<16x2xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : <8x2xf32>
  %x = exec.arg input "x" at 128 global tensor<16x2xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : !exec.buffer<8x2xf32>
  // CHECK: exec.arg step "step" at 192 : <i64>
  %step = exec.arg step "step" at 192 : !exec.buffer<i64>
  // CHECK: exec.arg valid_rows "valid_rows" at 256 : <i64>
  %valid = exec.arg valid_rows "valid_rows" at 256 : !exec.buffer<i64>
  // CHECK: %[[B:.*]] = exec.buffer activation at 320 : <8x8xf32>
  %b = exec.buffer activation at 320 : !exec.buffer<8x8xf32>
  // CHECK: %[[V:.*]] = exec.view %[[B]][8] : <8x8xf32> -> <8xf32>
  %v = exec.view %b[8] : !exec.buffer<8x8xf32> -> !exec.buffer<8xf32>
  %s = exec.buffer grad at 640 : !exec.buffer<f32>
  %w = exec.buffer workspace at 704 : !exec.buffer<32xf32>
  // CHECK: exec.gemm %x, %x into %[[B]] m = 8 n = 8 k = 2 lda = 2 ldb = 2 ldc = 8 transpose_b {name = "matmul"} : <8x2xf32>, <8x2xf32>, <8x8xf32>
  exec.gemm %x, %x into %b m = 8 n = 8 k = 2 lda = 2 ldb = 2 ldc = 8 transpose_b {name = "matmul"} : !exec.buffer<8x2xf32>, !exec.buffer<8x2xf32>, !exec.buffer<8x8xf32>
  // CHECK: exec.gemm %x, %x into %[[B]] m = 2 n = 2 k = 1 lda = 2 ldb = 2 ldc = 2 batch = 4 strides = [4, 4, 4] transpose_a accumulate :
  exec.gemm %x, %x into %b m = 2 n = 2 k = 1 lda = 2 ldb = 2 ldc = 2 batch = 4 strides = [4, 4, 4] transpose_a accumulate : !exec.buffer<8x2xf32>, !exec.buffer<8x2xf32>, !exec.buffer<8x8xf32>
  // CHECK: %[[T:.*]] = exec.launch @k ins(%p, %[[V]] : !exec.buffer<8xf32>, !exec.buffer<8xf32>) inplace [0, -1] outs(%{{.*}} : !exec.buffer<f32>) workspace(%{{.*}} : !exec.buffer<32xf32>) -> !exec.token
  %t = exec.launch @k ins(%p, %v : !exec.buffer<8xf32>, !exec.buffer<8xf32>) inplace [0, -1] outs(%s : !exec.buffer<f32>) workspace(%w : !exec.buffer<32xf32>) -> !exec.token
  // CHECK: exec.copy %[[V]] to %p.m {name = "update"} : <8xf32>, <8xf32>
  exec.copy %v to %m {name = "update"} : !exec.buffer<8xf32>, !exec.buffer<8xf32>
  // CHECK: exec.axis_index {"data"} * 8 to %step : <i64>
  exec.axis_index {"data"} * 8 to %step : !exec.buffer<i64>
  // CHECK: exec.wait %[[T]] stream 1
  exec.wait %t stream 1
  // CHECK: %[[U:.*]] = exec.all_reduce {"data", "tensor"} sum %{{.*}} to %{{.*}} stream 1 {name = "loss", reason = "why"} : <f32>, <f32> -> !exec.token
  %u = exec.all_reduce {"data", "tensor"} sum %s to %s stream 1 {name = "loss", reason = "why"} : !exec.buffer<f32>, !exec.buffer<f32> -> !exec.token
  // CHECK: exec.wait %[[U]]{{$}}
  exec.wait %u
  // CHECK: exec.all_gather {"data"} %[[V]] to %x
  exec.all_gather {"data"} %v to %x : !exec.buffer<8xf32>, !exec.buffer<8x2xf32>
  // CHECK: exec.reduce_scatter {"data"} max %x to %[[V]]
  exec.reduce_scatter {"data"} max %x to %v : !exec.buffer<8x2xf32>, !exec.buffer<8xf32>
  // CHECK: exec.all_to_all {"tensor"} %[[V]] to %p.m
  exec.all_to_all {"tensor"} %v to %m : !exec.buffer<8xf32>, !exec.buffer<8xf32>
  // CHECK: exec.broadcast {"tensor"} root = 1 %[[V]] to %p.m
  exec.broadcast {"tensor"} root = 1 %v to %m : !exec.buffer<8xf32>, !exec.buffer<8xf32>
  // CHECK: exec.scatter {"data"} root = 0 %x to %[[V]]
  exec.scatter {"data"} root = 0 %x to %v : !exec.buffer<8x2xf32>, !exec.buffer<8xf32>
  // CHECK: exec.gather {"data"} root = 1 %[[V]] to %x
  exec.gather {"data"} root = 1 %v to %x : !exec.buffer<8xf32>, !exec.buffer<8x2xf32>
  // CHECK: exec.permute {"data"} from [0, 1] to [1, 0] %[[V]] to %p.m
  exec.permute {"data"} from [0, 1] to [1, 0] %v to %m : !exec.buffer<8xf32>, !exec.buffer<8xf32>
  // CHECK: exec.point_to_point sends(%[[V]] : !exec.buffer<8xf32>) to [array<i64: 1, -1, 3, -1>] recvs(%p.m : !exec.buffer<8xf32>) from [array<i64: -1, 0, -1, 2>]
  exec.point_to_point sends(%v : !exec.buffer<8xf32>) to [array<i64: 1, -1, 3, -1>] recvs(%m : !exec.buffer<8xf32>) from [array<i64: -1, 0, -1, 2>]
  // CHECK: exec.barrier {"data"} {name = "end"}
  exec.barrier {"data"} {name = "end"}
  // CHECK: exec.probe loss "loss" %{{.*}} : <f32>
  exec.probe loss "loss" %s : !exec.buffer<f32>
  // CHECK: exec.probe output "logits" %x global tensor<16x2xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : <8x2xf32>
  exec.probe output "logits" %x global tensor<16x2xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : !exec.buffer<8x2xf32>
}

// CHECK: exec.program @attention
exec.program @attention infer arena = 20480 rows = 0 bytes = <params = 2560, grads = 0, optimizer = 0, activations = 2560, workspace = 2304> {
  %q = exec.arg param "q" at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.arg param "k" at 448 : !exec.buffer<2x6x2x4xf32>
  %s = exec.buffer activation at 896 : !exec.buffer<2x6xi64>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1472 : !exec.buffer<2x6x2x1xf32>
  %dk = exec.buffer activation at 1600 : !exec.buffer<2x6x2x4xf32>
  %dv = exec.buffer activation at 2048 : !exec.buffer<2x6x2x4xf32>
  %w = exec.buffer workspace at 2496 : !exec.buffer<198xf32>
  // CHECK: exec.attention %q, %k, %k into %[[O:.*]], %[[L:.*]] workspace %[[W:.*]] causal scale = 5.000000e-01 {name = "attention"} : (!exec.buffer<2x6x2x1x4xf32>,
  exec.attention %q, %k, %k into %o, %l workspace %w causal scale = 0.5 {name = "attention"} : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<198xf32>)
  // CHECK: exec.attention_grad %[[O]], %q, %k, %k, %[[O]], %[[L]] segments = %[[S:.*]], %[[S]] into %{{.*}}, %{{.*}}, %{{.*}} workspace %[[W]] window = 2 scale
  %dq = exec.buffer activation at 3328 : !exec.buffer<2x6x2x1x4xf32>
  exec.attention_grad %o, %q, %k, %k, %o, %l segments = %s, %s into %dq, %dk, %dv workspace %w window = 2 scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6xi64>, !exec.buffer<2x6xi64>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<198xf32>)
}

// Fewer queries than keys, at positions of their own; results that are wider than what they are made from, for which nothing is staged.
// CHECK: exec.program @attention_positions
exec.program @attention_positions infer arena = 4096 rows = 0 bytes = <params = 128, grads = 0, optimizer = 0, activations = 960, workspace = 896> {
  %q = exec.arg param "q" at 0 : !exec.buffer<1x2x1x3x4xbf16>
  %k = exec.arg param "k" at 64 : !exec.buffer<1x5x1x4xbf16>
  %qs = exec.buffer activation at 128 : !exec.buffer<1x2xi64>
  %ks = exec.buffer activation at 192 : !exec.buffer<1x5xi64>
  %qp = exec.buffer activation at 256 : !exec.buffer<2xi64>
  %kp = exec.buffer activation at 320 : !exec.buffer<5xi64>
  %o = exec.buffer activation at 384 : !exec.buffer<1x2x1x3x4xf32>
  %l = exec.buffer activation at 512 : !exec.buffer<1x2x1x3xf32>
  %w = exec.buffer workspace at 576 : !exec.buffer<172xf32>
  // CHECK: exec.attention %q, %k, %k segments = %{{.*}}, %{{.*}} positions = %[[QP:.*]], %[[KP:.*]] into %{{.*}}, %[[L:.*]] workspace %{{.*}} causal window = 2 scale
  exec.attention %q, %k, %k segments = %qs, %ks positions = %qp, %kp into %o, %l workspace %w causal window = 2 scale = 0.5 : (!exec.buffer<1x2x1x3x4xbf16>, !exec.buffer<1x5x1x4xbf16>, !exec.buffer<1x5x1x4xbf16>, !exec.buffer<1x2xi64>, !exec.buffer<1x5xi64>, !exec.buffer<2xi64>, !exec.buffer<5xi64>, !exec.buffer<1x2x1x3x4xf32>, !exec.buffer<1x2x1x3xf32>, !exec.buffer<172xf32>)
  %dq = exec.buffer activation at 1280 : !exec.buffer<1x2x1x3x4xf32>
  %dk = exec.buffer activation at 1408 : !exec.buffer<1x5x1x4xf32>
  %dv = exec.buffer activation at 1536 : !exec.buffer<1x5x1x4xf32>
  %x = exec.buffer workspace at 1664 : !exec.buffer<218xf32>
  // CHECK: exec.attention_grad %q, %q, %k, %k, %q, %[[L]] positions = %[[QP]], %[[KP]] into %{{.*}}, %{{.*}}, %{{.*}} workspace %{{.*}} causal scale
  exec.attention_grad %q, %q, %k, %k, %q, %l positions = %qp, %kp into %dq, %dk, %dv workspace %x causal scale = 0.5 : (!exec.buffer<1x2x1x3x4xbf16>, !exec.buffer<1x2x1x3x4xbf16>, !exec.buffer<1x5x1x4xbf16>, !exec.buffer<1x5x1x4xbf16>, !exec.buffer<1x2x1x3x4xbf16>, !exec.buffer<1x2x1x3xf32>, !exec.buffer<2xi64>, !exec.buffer<5xi64>, !exec.buffer<1x2x1x3x4xf32>, !exec.buffer<1x5x1x4xf32>, !exec.buffer<1x5x1x4xf32>, !exec.buffer<218xf32>)
}

// CHECK: exec.program @rows
exec.program @rows infer arena = 1024 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 960, workspace = 64> {
  // CHECK: %t = exec.arg param "t" at 0 init = constant(0.000000e+00, 0.000000e+00) file = [12] : <2x3x2xf32>
  %t = exec.arg param "t" at 0 init = constant(0.0, 0.0) file = [12] : !exec.buffer<2x3x2xf32>
  // CHECK: %i = exec.arg input "i" at 64 indices = 9 ignored = -100 : <5xi32>
  %i = exec.arg input "i" at 64 indices = 9 ignored = -100 : !exec.buffer<5xi32>
  %o = exec.arg input "o" at 128 : !exec.buffer<i64>
  %v = exec.buffer activation at 192 : !exec.buffer<5x2x2xbf16>
  %r = exec.buffer activation at 256 : !exec.buffer<3x2x2xbf16>
  %w = exec.buffer workspace at 320 : !exec.buffer<12xf32>
  // CHECK: %[[T:.*]] = exec.scatter_add %i, %[[V:.*]] offset %o into %[[R:.*]] workspace %{{.*}} {name = "n"} : <5xi32>, <5x2x2xbf16> offset !exec.buffer<i64> into <3x2x2xbf16> workspace !exec.buffer<12xf32> -> !exec.token
  %token = exec.scatter_add %i, %v offset %o into %r workspace %w {name = "n"} : !exec.buffer<5xi32>, !exec.buffer<5x2x2xbf16> offset !exec.buffer<i64> into !exec.buffer<3x2x2xbf16> workspace !exec.buffer<12xf32> -> !exec.token
  // CHECK: exec.wait %[[T]] stream 1
  exec.wait %token stream 1
}

// A value and a kernel may be the host's.
// CHECK: func.func private @k_host(tensor<8xf32>) -> tensor<8xf32> attributes {exec.host, exec.kernel}
func.func private @k_host(%p: tensor<8xf32>) -> tensor<8xf32> attributes {exec.host, exec.kernel}
// CHECK: exec.transfer %{{.*}} to host : tensor<8xf32>
// CHECK: exec.transfer %{{.*}} to device : tensor<8xf32>
func.func @there_and_back(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = exec.transfer %x to host : tensor<8xf32>
  %1 = exec.transfer %0 to device : tensor<8xf32>
  return %1 : tensor<8xf32>
}
// CHECK: exec.program @offloaded train arena = 64 host = 128 rows = 0
exec.program @offloaded train arena = 64 host = 128 rows = 0 bytes = <params = 32, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<8xf32>
  // CHECK: %p.m = exec.arg state "p.m" of "p" at 0 : <8xf32, host>
  %m = exec.arg state "p.m" of "p" at 0 : !exec.buffer<8xf32, host>
  // CHECK: exec.buffer activation at 64 : <8xf32, host>
  %b = exec.buffer activation at 64 : !exec.buffer<8xf32, host>
  // CHECK: exec.view %p.m[0] : <8xf32, host> -> <2x4xf32, host>
  %v = exec.view %m[0] : !exec.buffer<8xf32, host> -> !exec.buffer<2x4xf32, host>
  // CHECK: exec.launch @k_host ins(%p.m : !exec.buffer<8xf32, host>) outs(%{{.*}} : !exec.buffer<8xf32, host>)
  exec.launch @k_host ins(%m : !exec.buffer<8xf32, host>) outs(%b : !exec.buffer<8xf32, host>)
  // CHECK: exec.copy %{{.*}} to %p {name = "to_device"} : <8xf32, host>, <8xf32>
  exec.copy %b to %p {name = "to_device"} : !exec.buffer<8xf32, host>, !exec.buffer<8xf32>
}
