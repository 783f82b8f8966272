// RUN: shoal-opt %s -split-input-file -verify-diagnostics --exec-verify

// An evaluation program reads parameters of its training program only.
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{is no argument of the training program: "b"}}
  %b = exec.arg param "b" at 0 : !exec.buffer<16xf32>
}

// -----

// At the same place.
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's is here}}
  %w = exec.arg param "w" at 64 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must have the offset of the training program's "w", 64, got: 0}}
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
}

// -----

// In the same layout.
dist.mesh @mesh <["tensor"=2]>
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's is here}}
  %w = exec.arg param "w" at 0 global tensor<8x4xf32> sharding = <@mesh, [{"tensor"}, {}]> : !exec.buffer<4x4xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must have the local type of the training program's "w", '!exec.buffer<4x4xf32>', got: '!exec.buffer<8x2xf32>'}}
  %w = exec.arg param "w" at 0 global tensor<8x4xf32> sharding = <@mesh, [{}, {"tensor"}]> : !exec.buffer<8x2xf32>
}

// -----

// With the same tensors in a bucket.
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's is here}}
  %w = exec.arg param "b" at 0 bucket = <[<#nn.param<"u", init = zeros>, tensor<4xf32>>, <#nn.param<"v", init = zeros>, tensor<4xf32>>]> : !exec.buffer<8xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must have the tensors of the training program's "b"}}
  %w = exec.arg param "b" at 0 bucket = <[<#nn.param<"v", init = zeros>, tensor<4xf32>>, <#nn.param<"u", init = zeros>, tensor<4xf32>>]> : !exec.buffer<8xf32>
}

// -----

// Its inputs do not lie on what training keeps.
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  // expected-note @+1 {{the training program's argument is here}}
  %v = exec.arg state "w.velocity" of "w" at 64 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  // expected-error @+1 {{writes bytes [64, 128) while training keeps "w.velocity" at [64, 128)}}
  %x = exec.arg input "x" at 64 : !exec.buffer<16xf32>
}

// -----

// Nor do its rows write there, not even into its own parameter.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's argument is here}}
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  // expected-error @+1 {{writes bytes [0, 64) while training keeps "w" at [0, 64)}}
  exec.launch @k ins(%w : !exec.buffer<16xf32>) inplace [0]
}

// -----

// Nor does it write state on the host; the device's bytes at the same offset are others.
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.host, exec.kernel}
exec.program @f train arena = 128 host = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's argument is here}}
  %m = exec.arg state "w.m" of "w" at 0 : !exec.buffer<16xf32, host>
  %w = exec.arg param master "w" at 64 : !exec.buffer<16xf32, host>
}
exec.program @f_eval eval arena = 128 host = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param master "w" at 64 : !exec.buffer<16xf32, host>
  %d = exec.buffer param at 64 : !exec.buffer<16xf32>
  exec.copy %w to %d : !exec.buffer<16xf32, host>, !exec.buffer<16xf32>
  %c = exec.buffer param at 0 : !exec.buffer<16xf32, host>
  // expected-error @+1 {{writes bytes [0, 64) while training keeps "w.m" at [0, 64)}}
  exec.launch @k ins(%w : !exec.buffer<16xf32, host>) outs(%c : !exec.buffer<16xf32, host>)
}

// -----

// A parameter is read where training holds it.
dist.mesh @mesh <["pipe"=2]>
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's is here}}
  %w = exec.arg param "w" at 0 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must be held where the training program holds it, at mesh positions array<i64: 0>, got: array<i64: 0, 1>}}
  %w = exec.arg param "w" at 0 {exec.at = array<i64: 0, 1>} : !exec.buffer<16xf32>
}

// -----

// What training keeps at one position is left alone there, also behind what others keep; others may write the same
// bytes.
dist.mesh @mesh <["pipe"=2]>
exec.program @f train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the training program's argument is here}}
  %w = exec.arg param "w" at 0 {exec.at = array<i64: 0>} : !exec.buffer<48xf32>
  %v = exec.arg param "v" at 64 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %x = exec.arg input "x" at 128 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
  // expected-error @+1 {{writes bytes [128, 192) while training keeps "w" at [0, 192)}}
  %y = exec.arg input "y" at 128 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
}
