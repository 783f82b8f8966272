// RUN: shoal-opt %s --exec-bufferize-kernels --split-input-file --verify-diagnostics

// The pass alone, on kernels that convert-nn-to-linalg refuses before it.
// expected-error @below {{a kernel must have a body of one block}}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}

// -----

// expected-error @below {{a kernel must have a body of one block}}
func.func private @branches(%a: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel} {
  llvm.br ^next
^next:
  return %a : tensor<4xf32>
}
