// RUN: shoal-opt %s --convert-nn-to-linalg --exec-bufferize-kernels --split-input-file --verify-diagnostics

// Library calls are rows of the program, not parts of kernels.
func.func private @gemm(%a: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {exec.kernel} {
  // expected-error @below {{is no part of a kernel: it is a library call}}
  %0 = nn.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// A kernel does not know how many rows are real.
func.func private @mean(%a: tensor<4xf32>) -> tensor<f32> attributes {exec.kernel} {
  // expected-error @below {{is a mean, and what it divides by is the count of the whole}}
  %0 = nn.reduce mean %a dims = [0] : tensor<4xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{a kernel must have a body of one block}}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}

// -----

// expected-error @below {{result 0 is one operand in place of another}}
func.func private @swap(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>} {
  return %b : tensor<4xf32>
}

// -----

// Only projections: the fusion reasons about dimensions, not about sums of loops.
func.func private @shifted(%a: tensor<5xf32>) -> tensor<4xf32> attributes {exec.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{indexing maps in kernels must be projections}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 + 1)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a : tensor<5xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @foreign(%a: tensor<4xf32>) -> tensor<2xf32> attributes {exec.kernel} {
  // expected-error @below {{cannot be part of a kernel}}
  %0 = tensor.extract_slice %a[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// A result must be something.
// expected-error @below {{result 1 must be an operand, computed or a constant, got: tensor.empty}}
func.func private @nothing(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) attributes {exec.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %v = tensor.expand_shape %e [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  return %a, %v : tensor<4xf32>, tensor<2x2xf32>
}

// -----

// Nor may an op read what nothing has written.
func.func private @reads_nothing() -> tensor<4xf32> attributes {exec.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{input 0 must be an operand, computed or a constant, got: tensor.empty}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%e : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
