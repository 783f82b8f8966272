// RUN: shoal-opt %s -split-input-file -verify-diagnostics --exec-verify

// A program that keeps the contract: a gradient is reduced on stream 1 while stream 0 goes on, and awaited before it is used.
dist.mesh @mesh <["data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %g = exec.buffer grad at 64 : !exec.buffer<2xf32>
  %h = exec.buffer activation at 128 : !exec.buffer<2xf32>
  %t = exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%g : !exec.buffer<2xf32>) -> !exec.token
  exec.wait %t stream 1
  %u = exec.all_reduce {"data"} sum %g to %g stream 1 : !exec.buffer<2xf32>, !exec.buffer<2xf32> -> !exec.token
  exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%h : !exec.buffer<2xf32>)
  exec.wait %u
  exec.probe grad "p" %g : !exec.buffer<2xf32>
}

// -----

// Buffers lie in the arena.
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must lie inside the arena of 64 bytes, got: 8 bytes at 64}}
  %p = exec.arg param "p" at 64 : !exec.buffer<2xf32>
}

// -----

// Arguments do not share storage.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the other buffer is here}}
  %p = exec.arg param "p" at 0 : !exec.buffer<20xf32>
  // expected-error @+1 {{shares bytes [64, 72) with a buffer that is in use at the same time}}
  %q = exec.arg param "q" at 64 : !exec.buffer<2xf32>
}

// -----

// Two buffers in use at once do not overlap: %a is read after %b was written over it.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  // expected-note @+1 {{the other buffer is here}}
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{shares bytes [64, 72) with a buffer that is in use at the same time}}
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%a : !exec.buffer<2xf32>)
  exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%b : !exec.buffer<2xf32>)
  exec.launch @k ins(%a : !exec.buffer<2xf32>) outs(%c : !exec.buffer<2xf32>)
  exec.probe output "b" %b : !exec.buffer<2xf32>
}

// -----

// They may, one after the other.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%a : !exec.buffer<2xf32>)
  exec.launch @k ins(%a : !exec.buffer<2xf32>) outs(%c : !exec.buffer<2xf32>)
  exec.launch @k ins(%c : !exec.buffer<2xf32>) outs(%b : !exec.buffer<2xf32>)
  exec.probe output "b" %b : !exec.buffer<2xf32>
}

// -----

// A buffer that a collective still reads is in use until somebody has waited.
dist.mesh @mesh <["data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %t = exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%a : !exec.buffer<2xf32>) -> !exec.token
  exec.wait %t stream 1
  %r = exec.buffer activation at 128 : !exec.buffer<2xf32>
  // expected-note @+1 {{that row is here}}
  %u = exec.all_reduce {"data"} sum %a to %r stream 1 : !exec.buffer<2xf32>, !exec.buffer<2xf32> -> !exec.token
  // Stream 2 has only waited for the row before the collective.
  exec.wait %t stream 2
  // expected-error @+1 {{writes bytes [64, 72) while a row on stream 1 may read them; wait for it}}
  exec.copy %p to %b stream 2 : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  exec.wait %u
}

// -----

// A row of another stream is awaited before its result is read.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-note @+1 {{that row is here}}
  %u = exec.all_reduce {"data"} sum %p to %a stream 1 : !exec.buffer<2xf32>, !exec.buffer<2xf32> -> !exec.token
  // expected-error @+1 {{reads bytes [64, 72) while a row on stream 1 may write them; wait for it}}
  exec.probe output "a" %a : !exec.buffer<2xf32>
  exec.wait %u
}

// -----

// And before what it reads is overwritten.
dist.mesh @mesh <["data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-note @+1 {{that row is here}}
  %u = exec.all_reduce {"data"} sum %p to %a stream 1 : !exec.buffer<2xf32>, !exec.buffer<2xf32> -> !exec.token
  // expected-error @+1 {{writes bytes [0, 8) while a row on stream 1 may read them; wait for it}}
  exec.launch @k ins(%p : !exec.buffer<2xf32>) inplace [0]
  exec.wait %u
}

// -----

// Nothing is read before it is written, not even in part.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<4xf32>
  %v = exec.view %a[1] : !exec.buffer<4xf32> -> !exec.buffer<2xf32>
  exec.copy %p to %v : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  // expected-error @+1 {{reads bytes [64, 80) that nothing has written}}
  exec.probe output "a" %a : !exec.buffer<4xf32>
}

// -----

// A kernel's result is apart from its operands.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{writes bytes [0, 8), which overlap another operand at [0, 8)}}
  exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%p : !exec.buffer<2xf32>)
}

// -----

// What a kernel overwrites is not given to it a second time.
func.func private @k(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{must be given a buffer that it overwrites as one input, got it as 2}}
  exec.launch @k ins(%p, %p : !exec.buffer<2xf32>, !exec.buffer<2xf32>) inplace [0]
}

// -----

// Kernels need aligned buffers unless they were compiled for others.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<4xf32>
  %v = exec.view %p[1] : !exec.buffer<4xf32> -> !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{buffer must lie at a multiple of 64 unless the kernel says exec.unaligned, got: 4}}
  exec.launch @k ins(%v : !exec.buffer<2xf32>) outs(%a : !exec.buffer<2xf32>)
}

// -----

// Every token is waited for.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{signals a token that nobody waits for: needs an exec.wait on it, or no token}}
  %t = exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%a : !exec.buffer<2xf32>) -> !exec.token
}

// -----

// When the step ends, so has every row.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{may still run when the step ends; stream 0 must wait for it}}
  exec.all_reduce {"data"} sum %p to %a stream 1 : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}

// -----

// Kernels run on stream 0.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{must run on stream 0, got: 1}}
  exec.launch @k ins(%p : !exec.buffer<2xf32>) outs(%a : !exec.buffer<2xf32>) stream 1
}

// -----

// A result has one probe.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  exec.probe output "p" %p : !exec.buffer<2xf32>
  // expected-error @+1 {{result is probed twice: output p}}
  exec.probe output "p" %p : !exec.buffer<2xf32>
}

// -----

// A rank's piece has the size that the sharding says.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{a rank's piece is 'tensor<4xf32>', its buffer is '!exec.buffer<2xf32>'}}
  %p = exec.arg param "p" at 0 global tensor<7xf32> sharding = <@mesh, [{"data"}]> : !exec.buffer<2xf32>
}

// -----

// Arguments have names of their own.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{name is taken by another argument: p}}
  %q = exec.arg state "p" of "p" at 64 : !exec.buffer<2xf32>
}

// -----

// State is of a parameter, which may lie in a bucket, and be in the program behind it.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %m = exec.arg state "u.m" of "u" at 0 : !exec.buffer<4xf32>
  %n = exec.arg state "b.n" at 64 bucket = <[<#nn.state<"p.n", of = "p", init = 0.0>, tensor<4xf32>>]> : !exec.buffer<4xf32>
  %b = exec.arg param "b" at 128 bucket = <[<#nn.param<"u", init = zeros>, tensor<4xf32>>]> : !exec.buffer<4xf32>
  %p = exec.arg param "p" at 192 : !exec.buffer<4xf32>
}

// -----

// A bucket is none: files do not know it.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{holds state of "b", which is no parameter of the program}}
  %m = exec.arg state "b.m" of "b" at 0 : !exec.buffer<4xf32>
  %b = exec.arg param "b" at 64 bucket = <[<#nn.param<"u", init = zeros>, tensor<4xf32>>]> : !exec.buffer<4xf32>
}

// -----

// Nor is a buffer, or an input.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %s = exec.arg buffer "s" at 0 : !exec.buffer<4xf32>
  // expected-error @+1 {{holds state of "s", which is no parameter of the program}}
  %n = exec.arg state "b.n" at 64 bucket = <[<#nn.state<"s.n", of = "s", init = 0.0>, tensor<4xf32>>]> : !exec.buffer<4xf32>
}

// -----

// A position that does not run the row that writes has nothing to read.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 128 : !exec.buffer<2xf32>
  exec.copy %p to %a {exec.at = array<i64: 1>} : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  // expected-error @+1 {{reads bytes [64, 72) that nothing has written at mesh position 0}}
  exec.all_reduce {"x"} sum %a to %b : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}

// -----

// What is made of it counts as not written there, in a kernel's results each for itself: %d is made of %p alone.
dist.mesh @mesh <["x"=2]>
func.func private @k(%a: tensor<2xf32>, %p: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {exec.kernel} {
  %0 = nn.neg %a : tensor<2xf32>
  %1 = nn.neg %p : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  %d = exec.buffer activation at 192 : !exec.buffer<2xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, -1>] recvs(%a : !exec.buffer<2xf32>) from [array<i64: -1, 0>]
  exec.launch @k ins(%a, %p : !exec.buffer<2xf32>, !exec.buffer<2xf32>) outs(%c, %d : !exec.buffer<2xf32>, !exec.buffer<2xf32>)
  exec.all_reduce {"x"} sum %d to %d : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  // expected-error @+1 {{reads bytes [128, 136) that nothing has written at mesh position 0}}
  exec.probe output "c" %c : !exec.buffer<2xf32>
}

// -----

// Each position may copy its own; who takes part in a broadcast without being its root needs nothing to send.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 128 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 192 : !exec.buffer<2xf32>
  exec.copy %p to %a {exec.at = array<i64: 1>} : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  exec.broadcast {"x"} root = 1 %a to %b : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  exec.copy %a to %c {exec.at = array<i64: 1>} : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  exec.copy %b to %c {exec.at = array<i64: 0>} : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  exec.probe output "c" %c : !exec.buffer<2xf32>
}

// -----

// The two memories are apart: equal offsets are no common bytes, and a copy leads from one to the other.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.host, exec.kernel, exec.inplace = array<i64: 0>}
exec.program @p train arena = 64 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %m = exec.arg state "p.m" of "p" at 0 : !exec.buffer<2xf32, host>
  exec.launch @k ins(%m : !exec.buffer<2xf32, host>) inplace [0]
  exec.copy %m to %p : !exec.buffer<2xf32, host>, !exec.buffer<2xf32>
}

// -----

// What lies on the host lies in its arena.
exec.program @p train arena = 256 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must lie inside the host's arena of 64 bytes, got: 8 bytes at 64}}
  %m = exec.arg state "p.m" of "p" at 64 : !exec.buffer<2xf32, host>
}

// -----

// Buffers in use at once do not overlap there either.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.host, exec.kernel}
exec.program @p train arena = 0 host = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the other buffer is here}}
  %m = exec.arg state "p.m" of "p" at 0 : !exec.buffer<20xf32, host>
  // expected-error @+1 {{shares bytes [64, 72) with a buffer that is in use at the same time}}
  %n = exec.arg state "p.n" of "p" at 64 : !exec.buffer<2xf32, host>
}

// -----

// Library calls work on the device.
exec.program @p train arena = 128 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %m = exec.arg state "p.m" of "p" at 0 : !exec.buffer<2x2xf32, host>
  %a = exec.arg param "p" at 0 : !exec.buffer<2x2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2x2xf32>
  // expected-error @+1 {{works in the memory of the device, got: '!exec.buffer<2x2xf32, host>'; an exec.copy brings it there}}
  exec.gemm %a, %m into %b m = 2 n = 2 k = 2 lda = 2 ldb = 2 ldc = 2 : !exec.buffer<2x2xf32>, !exec.buffer<2x2xf32, host>, !exec.buffer<2x2xf32>
}

// -----

// So does communication.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 0 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %m = exec.arg state "p.m" of "p" at 0 : !exec.buffer<2xf32, host>
  // expected-error @+1 {{works in the memory of the device, got: '!exec.buffer<2xf32, host>'}}
  exec.all_reduce {"data"} sum %m to %m : !exec.buffer<2xf32, host>, !exec.buffer<2xf32, host>
}

// -----

// So do the workspaces of its kernels.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>, exec.workspace = 8 : i64}
exec.program @p train arena = 64 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %w = exec.buffer workspace at 0 : !exec.buffer<2xf32, host>
  // expected-error @+1 {{works in the memory of the device, got: '!exec.buffer<2xf32, host>'}}
  exec.launch @k ins(%p : !exec.buffer<2xf32>) inplace [0] workspace(%w : !exec.buffer<2xf32, host>)
}

// -----

// A tensor that lies in several buckets has each of its elements in one of them.
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 bucket = <[<#nn.param<"w", init = zeros>, tensor<4xf32>[0:2]>]> : !exec.buffer<2xf32>
  // expected-error @+1 {{the buckets of "w" must hold each of its 4 elements once, got: [0:2] and then what begins at 1}}
  %b = exec.arg param "b" at 64 bucket = <[<#nn.param<"w", init = zeros>, tensor<4xf32>[1:4]>]> : !exec.buffer<3xf32>
}

// -----

exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 bucket = <[<#nn.param<"w", init = zeros>, tensor<5xf32>[2:4]>]> : !exec.buffer<2xf32>
  // expected-error @-1 {{the buckets of "w" must hold each of its 5 elements once, got: [0:4] and then what begins at 5}}
  %b = exec.arg param "b" at 64 bucket = <[<#nn.param<"w", init = zeros>, tensor<5xf32>[0:2]>]> : !exec.buffer<2xf32>
}

// -----

exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 bucket = <[<#nn.param<"w", init = zeros>, tensor<4xf32>[0:2]>]> : !exec.buffer<2xf32>
  // expected-error @+1 {{name is taken by another tensor: "w"}}
  %b = exec.arg param "b" at 64 bucket = <[<#nn.param<"w", init = ones>, tensor<4xf32>[2:4]>]> : !exec.buffer<2xf32>
}
