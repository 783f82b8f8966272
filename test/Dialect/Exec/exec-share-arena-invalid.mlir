// RUN: shoal-opt %s -split-input-file -verify-diagnostics --exec-share-arena

// What evaluation keeps is training's.
exec.program @f train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{is no argument of the training program: "b"}}
  %b = exec.arg param "b" at 0 : !exec.buffer<16xf32>
}

// -----

// Only what lies in its arena can be moved.
exec.program @f train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-error @+1 {{must lie inside the arena of 64 bytes, got: 64 bytes at 9223372036854775744}}
  %b = exec.buffer activation at 9223372036854775744 : !exec.buffer<16xf32>
}

// -----

// expected-error @+1 {{arena must be at most 2^61 bytes, got: 4611686018427387904}}
exec.program @f train arena = 4611686018427387904 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
}
exec.program @f_eval eval arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
}
