// RUN: shoal-opt %s -split-input-file --exec-share-arena --exec-verify | FileCheck %s

// What training keeps is where training has it, whatever the order; the rest moves behind that with its distances.
// Both arenas are the larger one.
// CHECK: exec.program @f train arena = 640
// CHECK: exec.program @f_eval eval arena = 640
// CHECK-NEXT: exec.arg param "w" at 64 :
// CHECK-NEXT: exec.arg input "x" at 256 :
// CHECK-NEXT: exec.buffer activation at 384 :
// CHECK-NEXT: exec.buffer activation at 512 :
func.func private @k(tensor<32xf32>) -> tensor<32xf32> attributes {exec.kernel}
exec.program @f train arena = 512 rows = 0 bytes = <params = 192, grads = 0, optimizer = 64, activations = 128, workspace = 0> {
  %u = exec.arg param "u" at 0 : !exec.buffer<16xf32>
  %w = exec.arg param "w" at 64 : !exec.buffer<16xf32>
  %v = exec.arg state "w.velocity" of "w" at 128 : !exec.buffer<16xf32>
  %s = exec.arg step "step" at 192 : !exec.buffer<i64>
  %x = exec.arg input "x" at 256 : !exec.buffer<32xf32>
}
exec.program @f_eval eval arena = 448 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 384, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  %x = exec.arg input "x" at 64 : !exec.buffer<32xf32>
  %a = exec.buffer activation at 192 : !exec.buffer<32xf32>
  %b = exec.buffer activation at 320 : !exec.buffer<32xf32>
  exec.launch @k ins(%x : !exec.buffer<32xf32>) outs(%a : !exec.buffer<32xf32>)
  exec.launch @k ins(%a : !exec.buffer<32xf32>) outs(%b : !exec.buffer<32xf32>)
}

// -----

// A smaller evaluation does not make the arena smaller.
// CHECK: exec.program @f train arena = 4096
// CHECK: exec.program @f_eval eval arena = 4096
exec.program @f train arena = 4096 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 64 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  exec.probe output "w" %w : !exec.buffer<16xf32>
}

// -----

// An evaluation alone stays as it is.
// CHECK: exec.program @f_eval eval arena = 128
// CHECK-NEXT: exec.arg param "w" at 0
exec.program @f_eval eval arena = 128 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  %x = exec.arg input "x" at 64 : !exec.buffer<16xf32>
}

// -----

// The host's arena is common in the same way: what an evaluation makes there lies behind the state that training keeps.
// CHECK: exec.program @f train arena = 64 host = 192
// CHECK: exec.program @f_eval eval arena = 64 host = 192
// CHECK-NEXT: exec.arg param master "w" at 64 : <16xf32, host>
// CHECK-NEXT: exec.buffer param at 128 : <16xbf16, host>
// CHECK-NEXT: exec.buffer param at 0 : <16xbf16>
func.func private @k(tensor<16xf32>) -> tensor<16xbf16> attributes {exec.host, exec.kernel}
exec.program @f train arena = 0 host = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %m = exec.arg state "w.m" of "w" at 0 : !exec.buffer<16xf32, host>
  %w = exec.arg param master "w" at 64 : !exec.buffer<16xf32, host>
}
exec.program @f_eval eval arena = 64 host = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %w = exec.arg param master "w" at 0 : !exec.buffer<16xf32, host>
  %c = exec.buffer param at 64 : !exec.buffer<16xbf16, host>
  %d = exec.buffer param at 0 : !exec.buffer<16xbf16>
  exec.launch @k ins(%w : !exec.buffer<16xf32, host>) outs(%c : !exec.buffer<16xbf16, host>)
  exec.copy %c to %d : !exec.buffer<16xbf16, host>, !exec.buffer<16xbf16>
}

// -----

// Each position keeps its own of training; the rest of evaluation moves as a whole, to where all have room for it.
dist.mesh @mesh <["pipe"=2]>
// CHECK: exec.program @f train arena = 512
// CHECK: exec.program @f_eval eval arena = 512
// CHECK-NEXT: exec.arg param "w" at 0 {exec.at = array<i64: 0>} :
// CHECK-NEXT: exec.arg param "v" at 0 {exec.at = array<i64: 1>} :
// CHECK-NEXT: exec.arg input "x" at 192 {exec.at = array<i64: 0>} :
// CHECK-NEXT: exec.buffer activation at 192 :
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {exec.kernel}
exec.program @f train arena = 512 rows = 0 bytes = <params = 64, grads = 0, optimizer = 64, activations = 128, workspace = 0> {
  %w = exec.arg param "w" at 0 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
  %m = exec.arg state "w.m" of "w" at 64 {exec.at = array<i64: 0>} : !exec.buffer<32xf32>
  %v = exec.arg param "v" at 0 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
}
exec.program @f_eval eval arena = 128 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 64, workspace = 0> {
  %w = exec.arg param "w" at 0 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
  %v = exec.arg param "v" at 0 {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
  %x = exec.arg input "x" at 64 {exec.at = array<i64: 0>} : !exec.buffer<16xf32>
  %a = exec.buffer activation at 64 : !exec.buffer<16xf32>
  exec.launch @k ins(%v : !exec.buffer<16xf32>) outs(%a : !exec.buffer<16xf32>) {exec.at = array<i64: 1>}
  exec.probe output "a" %a {exec.at = array<i64: 1>} : !exec.buffer<16xf32>
}
