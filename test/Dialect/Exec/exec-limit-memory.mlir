// RUN: shoal-opt %s --exec-limit-memory=limit=128 | FileCheck %s
// RUN: not shoal-opt %s --exec-limit-memory=limit=127 2>&1 | FileCheck %s --check-prefix=OVER

// An arena that a rank can hold is left alone; one that it cannot is refused with what lies in it.
// CHECK: exec.program @f
// OVER: exec-limit-memory.mlir:[[#@LINE+1]]:1: error: a rank may hold 127 bytes, its arena needs 128: at most 64 of parameters, 0 of gradients, 0 of optimizer state, 64 of activations, 0 of workspace at once; take more ranks or micro-batches, --recompute or --zero
exec.program @f infer arena = 128 rows = 0 bytes = <params = 64, grads = 0, optimizer = 0, activations = 64, workspace = 0> {
  %w = exec.arg param "w" at 0 : !exec.buffer<16xf32>
  %y = exec.buffer activation at 64 : !exec.buffer<16xf32>
  exec.copy %w to %y {name = "copy"} : !exec.buffer<16xf32>, !exec.buffer<16xf32>
}
