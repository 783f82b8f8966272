// RUN: shoal-opt %s --nn-verify-sizes --split-input-file --verify-diagnostics -o /dev/null

// The largest sizes, and a scalar, are right.
func.func @most(%x: tensor<1099511627776xf32>, %y: tensor<1048576x1048576xf64>, %z: tensor<f32>) {
  return
}

// -----

// expected-error @+1 {{a tensor must hold from 1 to 1099511627776 elements, got: 'tensor<32x0xf32>'}}
func.func @empty(%x: tensor<32x0xf32>) {
  return
}

// -----

// A product that does not fit 64 bits is not taken for a small one.
// expected-error @+1 {{a tensor must hold from 1 to 1099511627776 elements, got: 'tensor<4294967296x4294967296xf64>'}}
func.func @huge(%x: tensor<4294967296x4294967296xf64>) {
  return
}

// -----

// Results of ops count as arguments do.
func.func @result(%x: tensor<2097152x1xf32>) {
  // expected-error @+1 {{a tensor must hold from 1 to 1099511627776 elements, got: 'tensor<2097152x2097152xf32>'}}
  %0 = nn.broadcast %x : tensor<2097152x1xf32> -> tensor<2097152x2097152xf32>
  return
}
