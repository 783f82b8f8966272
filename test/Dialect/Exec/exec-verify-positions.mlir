// RUN: shoal-opt %s -split-input-file --exec-verify -verify-diagnostics -o /dev/null

// What no position has together may lie on the same bytes: arguments, buffers, and one of each.
dist.mesh @mesh <["pipe"=2]>
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel}
exec.program @p infer arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
  %b = exec.arg param "b" at 0 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
  %c = exec.arg param "c" at 64 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
  %d = exec.buffer activation at 64 : !exec.buffer<16xf32>
  %e = exec.buffer activation at 128 : !exec.buffer<16xf32>
  %f = exec.buffer activation at 128 : !exec.buffer<16xf32>
  exec.launch @k ins(%a : !exec.buffer<16xf32>) outs(%d : !exec.buffer<16xf32>) {exec.at = array<i64: 0>}
  exec.launch @k ins(%c : !exec.buffer<16xf32>) outs(%f : !exec.buffer<16xf32>) {exec.at = array<i64: 1>}
  exec.launch @k ins(%d : !exec.buffer<16xf32>) outs(%e : !exec.buffer<16xf32>) {exec.at = array<i64: 0>}
  exec.probe output "f" %f {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
  exec.probe output "e" %e {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
}

// -----

// Arguments that one position holds are apart, also where others hold only one of them.
dist.mesh @mesh <["pipe"=3]>
exec.program @p infer arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{the other buffer is here}}
  %a = exec.arg param "a" at 0 {exec.at = array<i64: 0, 1>} : !exec.buffer<32xf32>
  // expected-error @+1 {{shares bytes [64, 128) with a buffer that is in use at the same time}}
  %b = exec.arg param "b" at 64 {exec.at = array<i64: 1, 2>} : !exec.buffer<16xf32>
}

// -----

// So are buffers that are in use at once at one position, though not at another.
dist.mesh @mesh <["pipe"=2]>
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel}
exec.program @p infer arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<16xf32>
  // expected-note @+1 {{the other buffer is here}}
  %b = exec.buffer activation at 64 : !exec.buffer<16xf32>
  // expected-error @+1 {{shares bytes [64, 128) with a buffer that is in use at the same time}}
  %c = exec.buffer activation at 64 : !exec.buffer<16xf32>
  exec.launch @k ins(%a : !exec.buffer<16xf32>) outs(%b : !exec.buffer<16xf32>)
  exec.probe output "b0" %b {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
  exec.launch @k ins(%a : !exec.buffer<16xf32>) outs(%c : !exec.buffer<16xf32>)
  exec.probe output "b1" %b {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
}

// -----

// A row touches only what its position holds.
dist.mesh @mesh <["pipe"=2]>
exec.program @p infer arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  // expected-note @+1 {{exec.at of the argument says where it is}}
  %a = exec.arg param "a" at 0 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
  // expected-error @+1 {{reads "a" at mesh position 0, which does not hold it}}
  exec.probe output "a" %a : !exec.buffer<16xf32>
}

// -----

// Of a row of messages a position touches what it sends and receives itself.
dist.mesh @mesh <["pipe"=2]>
exec.program @p infer arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
  %b = exec.buffer activation at 0 : !exec.buffer<16xf32>
  exec.point_to_point sends(%a : !exec.buffer<16xf32>) to [array<i64: 1, -1>] recvs(%b : !exec.buffer<16xf32>) from [array<i64: -1, 0>]
  exec.probe output "b" %b {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
}

// -----

// A wait orders the streams of positions that have it, and of no other.
dist.mesh @mesh <["pipe"=2, "data"=2]>
exec.program @p infer arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<16xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<16xf32>
  // expected-note @+1 {{that row is here}}
  %t = exec.all_reduce {"data"} sum %a to %b stream 1 : !exec.buffer<16xf32>, !exec.buffer<16xf32> -> !exec.token
  exec.wait %t {exec.at = array<i64: 2, 3>}
  // expected-error @+1 {{reads bytes [64, 128) while a row on stream 1 may write them; wait for it}}
  exec.probe output "b" %b : !exec.buffer<16xf32>
  exec.wait %t
}

// -----

// Nobody waits for what only others run.
dist.mesh @mesh <["pipe"=2, "data"=2]>
exec.program @p infer arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<16xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<16xf32>
  %t = exec.all_reduce {"data"} sum %a to %b stream 1 {exec.at = array<i64: 2, 3>} : !exec.buffer<16xf32>, !exec.buffer<16xf32> -> !exec.token
  exec.wait %t {exec.at = array<i64: 2, 3>}
  exec.probe output "b" %b {exec.at = array<i64: 2, 3>} : !exec.buffer<16xf32>
}

// -----

// Who does gets to know that the rows before it have ended, which here is not all.
dist.mesh @mesh <["pipe"=2, "data"=2]>
exec.program @p infer arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<16xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<16xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<16xf32>
  exec.all_reduce {"data"} sum %a to %b stream 1 : !exec.buffer<16xf32>, !exec.buffer<16xf32>
  %t = exec.all_reduce {"data"} sum %a to %c stream 1 {exec.at = array<i64: 2, 3>} : !exec.buffer<16xf32>, !exec.buffer<16xf32> -> !exec.token
  exec.wait %t
  exec.probe output "b" %b : !exec.buffer<16xf32>
  // expected-error @+1 {{may still run when the step ends; stream 0 must wait for it}}
  exec.all_reduce {"data"} max %a to %c stream 1 {exec.at = array<i64: 0, 1>} : !exec.buffer<16xf32>, !exec.buffer<16xf32>
}

// -----

// A wait does not hold up positions that do not have it: position 0, too, waiting at the first one would be a circle.
dist.mesh @mesh <["pipe"=2]>
exec.program @p infer arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %a = exec.arg param "a" at 0 : !exec.buffer<16xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<16xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<16xf32>
  %t = exec.point_to_point sends(%a : !exec.buffer<16xf32>) to [array<i64: 1, -1>] from [] stream 1 {exec.at = array<i64: 0>} -> !exec.token
  exec.wait %t {exec.at = array<i64: 1>}
  %u = exec.point_to_point sends(%a : !exec.buffer<16xf32>) to [array<i64: 1, -1>] recvs(%b : !exec.buffer<16xf32>) from [array<i64: -1, 0>] -> !exec.token
  exec.wait %u stream 1 {exec.at = array<i64: 1>}
  %v = exec.point_to_point to [] recvs(%c : !exec.buffer<16xf32>) from [array<i64: -1, 0>] stream 1 {exec.at = array<i64: 1>} -> !exec.token
  exec.wait %v {exec.at = array<i64: 1>}
  exec.wait %t {exec.at = array<i64: 0>}
}
