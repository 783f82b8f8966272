// RUN: shoal-opt %s -split-input-file -verify-diagnostics

// A buffer has at least one element in every dimension.
exec.program @p train arena = 0 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{dimension of a buffer must be at least 1, got: 0}}
  %b = exec.buffer activation at 0 : !exec.buffer<0xf32>
}

// -----

// Offsets are multiples of 64.
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{offset must be a multiple of 64, got: 4}}
  %b = exec.buffer activation at 4 : !exec.buffer<2xf32>
}

// -----

// So is the arena.
// expected-error @+1 {{arena must be a multiple of 64 bytes, got: 65}}
exec.program @p train arena = 65 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
}

// -----

// A view stays inside its buffer.
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %b = exec.buffer activation at 0 : !exec.buffer<4xf32>
  // expected-error @+1 {{elements [2, +3) must lie in a buffer of 4 elements}}
  %v = exec.view %b[2] : !exec.buffer<4xf32> -> !exec.buffer<3xf32>
}

// -----

// The step is a scalar i64.
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{step must be a scalar i64, got: '!exec.buffer<i32>'}}
  %s = exec.arg step "step" at 0 : !exec.buffer<i32>
}

// -----

// A product fits its buffers.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2x3xf32>
  %c = exec.buffer activation at 64 : !exec.buffer<2x2xf32>
  // expected-error @+1 {{a needs 8 elements, its buffer has 6}}
  exec.gemm %a, %a into %c m = 2 n = 2 k = 4 lda = 4 ldb = 2 ldc = 2 : !exec.buffer<2x3xf32>, !exec.buffer<2x3xf32>, !exec.buffer<2x2xf32>
}

// -----

// A batch says where its products lie.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2x2xf32>
  %c = exec.buffer activation at 64 : !exec.buffer<2x2xf32>
  // expected-error @+1 {{a batch needs three strides, got: 2}}
  exec.gemm %a, %a into %c m = 2 n = 2 k = 2 lda = 2 ldb = 2 ldc = 2 batch = 3 strides = [4, 4] : !exec.buffer<2x2xf32>, !exec.buffer<2x2xf32>, !exec.buffer<2x2xf32>
}

// -----

// Rows are numbered by integers.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %i = exec.arg input "i" at 0 : !exec.buffer<5xf32>
  %v = exec.buffer activation at 64 : !exec.buffer<5x2xf32>
  %r = exec.buffer activation at 128 : !exec.buffer<3x2xf32>
  // expected-error @+1 {{ids must be i32 or i64, got: '!exec.buffer<5xf32>'}}
  exec.scatter_add %i, %v into %r : !exec.buffer<5xf32>, !exec.buffer<5x2xf32> into !exec.buffer<3x2xf32>
}

// -----

// Every number has its row.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %i = exec.arg input "i" at 0 : !exec.buffer<5xi64>
  %v = exec.buffer activation at 64 : !exec.buffer<4x2xf32>
  %r = exec.buffer activation at 128 : !exec.buffer<3x2xf32>
  // expected-error @+1 {{values must be 5 rows of 2 elements, got: '!exec.buffer<4x2xf32>'}}
  exec.scatter_add %i, %v into %r : !exec.buffer<5xi64>, !exec.buffer<4x2xf32> into !exec.buffer<3x2xf32>
}

// -----

// Sums of bf16 are made as f32.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %i = exec.arg input "i" at 0 : !exec.buffer<5xi64>
  %v = exec.buffer activation at 64 : !exec.buffer<5x2xbf16>
  %r = exec.buffer activation at 128 : !exec.buffer<3x2xbf16>
  // expected-error @+1 {{needs 24 bytes of workspace, got: 0}}
  exec.scatter_add %i, %v into %r : !exec.buffer<5xi64>, !exec.buffer<5x2xbf16> into !exec.buffer<3x2xbf16>
}

// -----

// A shard has one first row.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %i = exec.arg input "i" at 0 : !exec.buffer<5xi64>
  %o = exec.arg input "o" at 64 : !exec.buffer<2xi64>
  %v = exec.buffer activation at 128 : !exec.buffer<5x2xf32>
  %r = exec.buffer activation at 192 : !exec.buffer<3x2xf32>
  // expected-error @+1 {{offset must be a scalar i64, got: '!exec.buffer<2xi64>'}}
  exec.scatter_add %i, %v offset %o into %r : !exec.buffer<5xi64>, !exec.buffer<5x2xf32> offset !exec.buffer<2xi64> into !exec.buffer<3x2xf32>
}

// -----

// Files hold the elements of the whole tensor.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{the shape in files must have 6 elements, got: [5]}}
  %w = exec.arg param "w" at 0 file = [5] : !exec.buffer<2x3xf32>
}

// -----

// Parameters index nothing.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{only inputs of integers are indices, got: param '!exec.buffer<2x3xf32>'}}
  %w = exec.arg param "w" at 0 indices = 4 : !exec.buffer<2x3xf32>
}

// -----

// What is ignored is beside what is not.
exec.program @p infer arena = 1024 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{indices must be at least 1, got: 0}}
  %i = exec.arg input "i" at 0 ignored = -1 : !exec.buffer<2xi64>
}

// -----

// A launch names a kernel.
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{no kernel is named @k}}
  exec.launch @k ins(%a : !exec.buffer<2xf32>)
}

// -----

// A launch gives the kernel's buffers.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{buffers must be those of kernel @k}}
  exec.launch @k ins(%a : !exec.buffer<2xf32>)
}

// -----

// A launch writes in place what the kernel writes in place.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{inplace must repeat that of kernel @k}}
  exec.launch @k ins(%a : !exec.buffer<2xf32>)
}

// -----

// A kernel gets the workspace it needs.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.workspace = 64 : i64}
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{kernel @k needs 64 bytes of workspace, got: 0}}
  exec.launch @k ins(%a : !exec.buffer<2xf32>) outs(%b : !exec.buffer<2xf32>)
}

// -----

// An in-place result has the type of what it overwrites.
// expected-error @+1 {{result 0 of type 'tensor<2xf32>' cannot overwrite operand 0 of type 'tensor<3xf32>'}}
func.func private @k(tensor<3xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}

// -----

// No operand is overwritten twice.
// expected-error @+1 {{operand 0 is overwritten by two results}}
func.func private @k(tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) attributes {exec.kernel, exec.inplace = array<i64: 0, 0>}

// -----

// Collectives act on axes of the mesh.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{unknown mesh axis "tensor"}}
  exec.all_reduce {"tensor"} sum %a to %a : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}

// -----

// A gathered buffer holds one chunk per rank.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<3xf32>
  // expected-error @+1 {{the larger buffer must hold the smaller one once per rank of the group}}
  exec.all_gather {"data"} %a to %b : !exec.buffer<2xf32>, !exec.buffer<3xf32>
}

// -----

// The root is a position of the group.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{root must be a position of the group of 2, got: 2}}
  exec.broadcast {"data"} root = 2 %a to %a : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}

// -----

// Nobody receives twice.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error @+1 {{positions must differ and lie in a group of 2, got: 1}}
  exec.permute {"data"} from [0, 1] to [1, 1] %a to %b : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}

// -----

// Messages name a peer for every mesh position.
dist.mesh @mesh <["data"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{needs one peer per mesh position (2), got: array<i64: 1>}}
  exec.point_to_point sends(%a : !exec.buffer<2xf32>) to [array<i64: 1>] from []
}

// -----

// A loss is a scalar.
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{a loss must be a scalar, got: '!exec.buffer<2xf32>'}}
  exec.probe loss "loss" %a : !exec.buffer<2xf32>
}

// -----

// Nor does a product whose matrices lie further apart than 64 bits count.
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2x2xf32>
  %c = exec.buffer activation at 64 : !exec.buffer<2x2xf32>
  // expected-error @+1 {{a needs more than 2^63 elements, its buffer has 4}}
  exec.gemm %a, %a into %c m = 2 n = 2 k = 2 lda = 2 ldb = 2 ldc = 2 batch = 3 strides = [9223372036854775807, 0, 0] : !exec.buffer<2x2xf32>, !exec.buffer<2x2xf32>, !exec.buffer<2x2xf32>
}

// -----

// 2^59 + 1 elements on each of 32 ranks are 2^64 + 32, not 32.
dist.mesh @mesh <["x"=32]>
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<576460752303423489xi1>
  %c = exec.buffer activation at 64 : !exec.buffer<32xi1>
  // expected-error @+1 {{the larger buffer must hold the smaller one once per rank of the group}}
  exec.all_gather {"x"} %a to %c : !exec.buffer<576460752303423489xi1>, !exec.buffer<32xi1>
}

// -----

// A rank program calls kernels on tensors; loops over memrefs live in a module of their own.
func.func private @k(%x: memref<2xf32>) attributes {exec.kernel} {
  return
}
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{kernel @k must work on tensors}}
  exec.launch @k ins(%a : !exec.buffer<2xf32>)
}

// -----

// Positions lie in the mesh.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<f32>
  // expected-error @+1 {{"exec.at" must hold positions of a mesh of 2 devices, got: 2}}
  exec.barrier {"x"} {exec.at = array<i64: 0, 2>}
}

// -----

// Each once, in order.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{"exec.at" must name each position once, in order, got: array<i64: 1, 0>}}
  exec.barrier {"x"} {exec.at = array<i64: 1, 0>}
}

// -----

// A buffer is where rows touch it, which say where they run.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{'exec.at' belongs on an argument, a wait or a row, in a module with a dist.mesh}}
  %b = exec.buffer activation at 0 {exec.at = array<i64: 0>} : !exec.buffer<f32>
}

// -----

// Rows of attention: buffers of one call, in a type that it is computed in, and a workspace that is large enough.
exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x3x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{takes queries of [batch, sequence, kv heads, groups, head size] and keys of [batch, sequence, kv heads, head size], got: '!exec.buffer<2x6x2x1x4xf32>' and '!exec.buffer<2x6x3x4xf32>'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x3x4xf32>, !exec.buffer<2x6x3x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xi32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xi32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xi32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{must be f32, f64 or bf16, got: 'i32'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xi32>, !exec.buffer<2x6x2x4xi32>, !exec.buffer<2x6x2x4xi32>, !exec.buffer<2x6x2x1x4xi32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

//// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xbf16>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xbf16>
  %w = exec.buffer workspace at 2048 : !exec.buffer<312xf32>
  // expected-error @+1 {{lse must be '!exec.buffer<2x6x2x1xf32>', got: '!exec.buffer<2x6x2x1xbf16>'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x4xbf16>, !exec.buffer<2x6x2x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1xbf16>, !exec.buffer<312xf32>)
}

// -----

// The widened tiles of bf16 have their place in the workspace: 6 x 18 for scores, and 4 x (2 x 6 + 2 x 16) elements.
exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xbf16>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<283xf32>
  // expected-error @+1 {{workspace must have 1136 bytes, got: '!exec.buffer<283xf32>'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x4xbf16>, !exec.buffer<2x6x2x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<283xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x5xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{o must be '!exec.buffer<2x6x2x1x4xf32>', got: '!exec.buffer<2x6x2x1x5xf32>'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x5xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{lse must be '!exec.buffer<2x6x2x1xf32>', got: '!exec.buffer<2x6x2xf32>'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<107xf32>
  // expected-error @+1 {{workspace must have 432 bytes, got: '!exec.buffer<107xf32>'}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<107xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{a causal mask or a window needs as many queries as keys, or positions, got: 6 and 7}}
  exec.attention %q, %k, %k into %o, %l workspace %w causal scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{window must be at least 1, got: -1}}
  exec.attention %q, %k, %k into %o, %l workspace %w window = -1 scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 4096 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x6x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %w = exec.buffer workspace at 2048 : !exec.buffer<108xf32>
  // expected-error @+1 {{scale must be finite, got: nan}}
  exec.attention %q, %k, %k into %o, %l workspace %w scale = 0x7FF8000000000000 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x4xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

// Positions are a pair of one number per row of q and of k.
exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %p = exec.buffer activation at 2048 : !exec.buffer<6xi64>
  %r = exec.buffer activation at 2560 : !exec.buffer<7xi64>
  %w = exec.buffer workspace at 3072 : !exec.buffer<108xf32>
  // expected-error @+1 {{takes the positions of queries and of keys, or none, got: 1}}
  exec.attention %q, %k, %k positions = %p into %o, %l workspace %w causal scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<6xi64>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %p = exec.buffer activation at 2048 : !exec.buffer<6xi64>
  %r = exec.buffer activation at 2560 : !exec.buffer<7xi64>
  %w = exec.buffer workspace at 3072 : !exec.buffer<108xf32>
  // expected-error @+1 {{key positions must be '!exec.buffer<7xi64>', got: '!exec.buffer<6xi64>'}}
  exec.attention %q, %k, %k positions = %p, %p into %o, %l workspace %w causal scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<6xi64>, !exec.buffer<6xi64>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xf32>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xf32>
  %o = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1xf32>
  %p = exec.buffer activation at 2048 : !exec.buffer<6xi32>
  %r = exec.buffer activation at 2560 : !exec.buffer<7xi64>
  %w = exec.buffer workspace at 3072 : !exec.buffer<108xf32>
  // expected-error @+1 {{query positions must be '!exec.buffer<6xi64>', got: '!exec.buffer<6xi32>'}}
  exec.attention %q, %k, %k positions = %p, %r into %o, %l workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<6xi32>, !exec.buffer<7xi64>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<108xf32>)
}

// -----

// o and its cotangent have one type, and so have dq, dk and dv.
exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xbf16>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xbf16>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xbf16>
  %w = exec.buffer workspace at 4096 : !exec.buffer<1000xf32>
  // expected-error @+1 {{cotangent must be '!exec.buffer<2x6x2x1x4xf32>', got: '!exec.buffer<2x6x2x1x4xbf16>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<1000xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xbf16>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xf32>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xbf16>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xbf16>
  %w = exec.buffer workspace at 4096 : !exec.buffer<1000xf32>
  // expected-error @+1 {{dk must be '!exec.buffer<2x7x2x4xf32>', got: '!exec.buffer<2x7x2x4xbf16>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<1000xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xbf16>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xbf16>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xbf16>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xf32>
  %w = exec.buffer workspace at 4096 : !exec.buffer<1000xf32>
  // expected-error @+1 {{dv must be '!exec.buffer<2x7x2x4xbf16>', got: '!exec.buffer<2x7x2x4xf32>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<1000xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf64>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xf64>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xbf16>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xbf16>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xbf16>
  %w = exec.buffer workspace at 4096 : !exec.buffer<1000xf32>
  // expected-error @+1 {{cotangent must be '!exec.buffer<2x6x2x1x4xbf16>', got: '!exec.buffer<2x6x2x1x4xf64>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf64>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xf64>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<1000xf32>)
}

// -----

// Results that are f32 themselves are not staged: of dq, dk and dv in bf16 6 x 33 + 4 x (6 x 4 + 2 x 16 + 2 x 7) elements, else fewer.
exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xbf16>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xbf16>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xbf16>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xbf16>
  %w = exec.buffer workspace at 4096 : !exec.buffer<477xf32>
  // expected-error @+1 {{workspace must have 1912 bytes, got: '!exec.buffer<477xf32>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<477xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xbf16>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xbf16>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xf32>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xf32>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xf32>
  %w = exec.buffer workspace at 4096 : !exec.buffer<397xf32>
  // expected-error @+1 {{workspace must have 1592 bytes, got: '!exec.buffer<397xf32>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<397xf32>)
}

// -----

exec.program @p infer arena = 8192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %q = exec.buffer activation at 0 : !exec.buffer<2x6x2x1x4xbf16>
  %k = exec.buffer activation at 512 : !exec.buffer<2x7x2x4xbf16>
  %c = exec.buffer activation at 1024 : !exec.buffer<2x6x2x1x4xf32>
  %o = exec.buffer activation at 1536 : !exec.buffer<2x6x2x1x4xf32>
  %l = exec.buffer activation at 2048 : !exec.buffer<2x6x2x1xf32>
  %dq = exec.buffer activation at 2560 : !exec.buffer<2x6x2x1x4xf32>
  %dk = exec.buffer activation at 3072 : !exec.buffer<2x7x2x4xf32>
  %dv = exec.buffer activation at 3584 : !exec.buffer<2x7x2x4xf32>
  %w = exec.buffer workspace at 4096 : !exec.buffer<349xf32>
  // expected-error @+1 {{workspace must have 1400 bytes, got: '!exec.buffer<349xf32>'}}
  exec.attention_grad %c, %q, %k, %k, %o, %l into %dq, %dk, %dv workspace %w scale = 0.5 : (!exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x7x2x4xbf16>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x6x2x1xf32>, !exec.buffer<2x6x2x1x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<2x7x2x4xf32>, !exec.buffer<349xf32>)
}

// -----

// What no op and no dialect knows is no attribute.
exec.program @p infer arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{unknown attribute 'nmae', it knows: offset, storage}}
  %b = exec.buffer activation at 0 {nmae = "b"} : !exec.buffer<2xf32>
}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{a bucket is a parameter, a state or a gradient of one dimension, got: 'tensor<4xf32>'}}
  %x = exec.arg input "x" at 0 bucket = <[<"w", tensor<4xf32>>]> : !exec.buffer<4xf32>
}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{a bucket of 5 elements must fit 'tensor<4xf32>'}}
  %x = exec.arg param "b" at 0 bucket = <[<#nn.param<"w", init = zeros>, tensor<5xf32>>]> : !exec.buffer<4xf32>
}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{state that is no bucket, and nothing else, says of which parameter it is, got: state of none}}
  %m = exec.arg state "w.m" at 0 : !exec.buffer<4xf32>
}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{state that is no bucket, and nothing else, says of which parameter it is, got: param of "v"}}
  %w = exec.arg param "w" of "v" at 0 : !exec.buffer<4xf32>
}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{says of which parameter it is, got: state of "w"}}
  %m = exec.arg state "b.m" of "w" at 0 bucket = <[<#nn.state<"w.m", of = "w", init = 0.0>, tensor<4xf32>>]> : !exec.buffer<4xf32>
}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{only a parameter is a master, got: state}}
  %x = exec.arg state master "m" at 0 : !exec.buffer<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'exec.class' is "param", "grad", "optimizer" or "workspace" on an op with results, got: "activation"}}
  %0 = nn.relu %x {exec.class = "activation"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// What the step reads by library calls and collectives lies on the device.
exec.program @p train arena = 0 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{only state of the optimizer and masters lie on the host, got: param}}
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32, host>
}

// -----

// A view stays where its buffer is.
exec.program @p train arena = 0 host = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.buffer grad at 0 : !exec.buffer<2xf32, host>
  // expected-error @+1 {{memory must not change (exec.copy moves bytes), got: '!exec.buffer<2xf32, host>' and '!exec.buffer<2xf32>'}}
  %b = exec.view %a[0] : !exec.buffer<2xf32, host> -> !exec.buffer<2xf32>
}

// -----

// A kernel of the host works in its memory.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.host, exec.kernel, exec.inplace = array<i64: 0>}
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32>
  // expected-error @+1 {{buffers must be those of kernel @k, '(tensor<2xf32>) -> tensor<2xf32>', on the host}}
  exec.launch @k ins(%a : !exec.buffer<2xf32>) inplace [0]
}

// -----

// expected-error @+1 {{host must be a multiple of 64 bytes, got: 8}}
exec.program @p train arena = 64 host = 8 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
}

// -----

// expected-error @+1 {{'exec.host' must be a unit attribute on a kernel}}
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.host = 1 : i64, exec.kernel}

// -----

// expected-error @+1 {{'exec.host' must be a unit attribute on a kernel}}
dist.mesh @mesh <["data"=2]> {exec.host}

// -----

exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{memory of a buffer must be device or host, got: disk}}
  %a = exec.arg param "a" at 0 : !exec.buffer<2xf32, disk>
}
