// RUN: shoal-opt %s -split-input-file -verify-diagnostics -o /dev/null

func.func @concat(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+1 {{only dimension 0 may change, got: 'tensor<4x3xf32>' and 'tensor<8x2xf32>'}}
  %0 = nn.concat %a, %b dim = 0 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @concat(%a: tensor<4x2xf32>) {
  // expected-error @+1 {{dimension 0 of the result must be 8, the sum of the operands', got: 'tensor<9x2xf32>'}}
  %0 = nn.concat %a, %a dim = 0 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<9x2xf32>
  return
}

// -----

func.func @concat() {
  // expected-error @+1 {{needs at least 1 operand, got: 0}}
  %0 = "nn.concat"() {dim = 0 : i64} : () -> tensor<0x2xf32>
  return
}

// -----

func.func @iota() {
  // expected-error @+1 {{dimension must be in [0, 1), got: 1}}
  %0 = nn.iota dim = 1 : tensor<4xi64>
  return
}

// -----

func.func @update(%a: tensor<4xf32>, %u: tensor<5xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{size must be at most 4, got: 5}}
  %0 = nn.dynamic_update_slice %a, %u dim = 0 start = %s : tensor<4xf32>, tensor<5xf32>
  return
}

// -----

func.func @batch_norm(%x: tensor<4xf32>, %f: tensor<4xf32>) {
  // expected-error @+1 {{input must have rows and features, got: 'tensor<4xf32>'}}
  %0:3 = nn.batch_norm %x, %f, %f, %f, %f momentum = 0.1 eps = 1.0e-5 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @batch_norm(%x: tensor<4x2xf32>, %f: tensor<4xf32>) {
  // expected-error @+1 {{scale, bias and statistics must be 'tensor<2xf32>', got: 'tensor<4xf32>'}}
  %0:3 = nn.batch_norm %x, %f, %f, %f, %f momentum = 0.1 eps = 1.0e-5 : tensor<4x2xf32>, tensor<4xf32>
  return
}

// -----

func.func @batch_norm(%x: tensor<4x2xf32>, %f: tensor<2xf32>) {
  // expected-error @+1 {{momentum must be in [0, 1], got: 1.1}}
  %0:3 = nn.batch_norm %x, %f, %f, %f, %f momentum = 1.1 eps = 1.0e-5 : tensor<4x2xf32>, tensor<2xf32>
  return
}

// -----

func.func @batch_norm(%x: tensor<4x2xf32>, %f: tensor<2xf32>) {
  // expected-error @+1 {{eps must be at least 0, got: -1}}
  %0:3 = nn.batch_norm %x, %f, %f, %f, %f momentum = 0.1 eps = -1.0 : tensor<4x2xf32>, tensor<2xf32>
  return
}

// -----

func.func @broadcast(%a: tensor<8x3xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{operand shapes must broadcast, got: 'tensor<8x3xf32>' and 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.add %a, %b : (tensor<8x3xf32>, tensor<4xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @elements(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error @+2 {{operands must have one element type, got: 'f32' and 'f64'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.add %a, %b : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf64>
  return
}

// -----

func.func @result(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+2 {{'nn.add' op failed to infer returned types}}
  // expected-error @+1 {{'nn.add' op inferred type(s) 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<5xf32>'}}
  %0 = nn.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @dynamic(%a: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor}}
  %0 = nn.neg %a : tensor<?xf32>
  return
}

// -----

func.func @half(%a: tensor<4xf16>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor}}
  %0 = nn.neg %a : tensor<4xf16>
  return
}

// -----

func.func @reshape(%a: tensor<4xf32>) {
  // expected-error @+1 {{element types and numbers of elements must agree, got: 'tensor<4xf32>' and 'tensor<5xf32>'}}
  %0 = nn.reshape %a : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @transpose(%a: tensor<4x2xf32>) {
  // expected-error @+2 {{permutation must name each of 2 dimensions once, got: array<i64: 0, 0>}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.transpose %a [0, 0] : tensor<4x2xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @broadcast(%a: tensor<4x2xf32>) {
  // expected-error @+1 {{input must broadcast to the result, got: 'tensor<4x2xf32>' and 'tensor<1x2xf32>'}}
  %0 = nn.broadcast %a : tensor<4x2xf32> -> tensor<1x2xf32>
  return
}

// -----

func.func @slice(%a: tensor<4x2xf32>) {
  // expected-error @+1 {{elements [2, 2 + 3) must lie inside [0, 4)}}
  %0 = nn.slice %a dim = 0 start = 2 : tensor<4x2xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @slice(%a: tensor<4x2xf32>) {
  // expected-error @+1 {{dimension must be in [0, 2), got: -1}}
  %0 = nn.slice %a dim = -1 start = 0 : tensor<4x2xf32> -> tensor<4x1xf32>
  return
}

// -----

func.func @slice(%a: tensor<4x2xf32>) {
  // expected-error @+1 {{only dimension 0 may change, got: 'tensor<4x2xf32>' and 'tensor<2x1xf32>'}}
  %0 = nn.slice %a dim = 0 start = 0 : tensor<4x2xf32> -> tensor<2x1xf32>
  return
}

// -----

func.func @pad(%a: tensor<4xf32>) {
  // expected-error @+1 {{input of size 4 at 3 must lie inside [0, 6)}}
  %0 = nn.pad %a dim = 0 low = 3 : tensor<4xf32> -> tensor<6xf32>
  return
}

// -----

func.func @mask(%a: tensor<4xi64>, %limit: tensor<i64>) {
  // expected-error @+1 {{fill must be a whole number of type 'i64', got: 5.000000e-01}}
  %0 = nn.mask %a dim = 0 limit = %limit fill = 0.5 : tensor<4xi64>
  return
}

// -----

func.func @tensordot(%a: tensor<2x3xf32>, %b: tensor<3x4x5xf32>) {
  // expected-error @+2 {{axes must be in [0, 2], got: 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.tensordot %a, %b axes = 3 : (tensor<2x3xf32>, tensor<3x4x5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @tensordot(%a: tensor<2x3xf32>, %b: tensor<3x4x5xf32>) {
  // expected-error @+2 {{axes must be in [0, 2], got: -1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.tensordot %a, %b axes = -1 : (tensor<2x3xf32>, tensor<3x4x5xf32>) -> tensor<2x4x5xf32>
  return
}

// -----

// As many elements are not enough: each dimension has its partner.
func.func @tensordot(%a: tensor<2x3x4xf32>, %b: tensor<4x3x5xf32>) {
  // expected-error @+2 {{inner dimensions must be equal, got: 'tensor<3x4xf32>' in a and 'tensor<4x3xf32>' in b}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.tensordot %a, %b axes = 2 : (tensor<2x3x4xf32>, tensor<4x3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @tensordot(%a: tensor<2x3xf32>, %b: tensor<3x4xf64>) {
  // expected-error @+2 {{element types must agree, got: 'tensor<2x3xf32>' and 'tensor<3x4xf64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.tensordot %a, %b axes = 1 : (tensor<2x3xf32>, tensor<3x4xf64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @tensordot(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{'nn.tensordot' op inferred type(s) 'tensor<2x4xf32>' are incompatible with return type(s) of operation 'tensor<4x2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.tensordot %a, %b axes = 1 : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @embedding(%t: tensor<f32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{table must have rows, got: 'tensor<f32>'}}
  %0 = nn.embedding %t, %i : (tensor<f32>, tensor<3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @embedding(%t: tensor<7x2xf32>, %i: tensor<3xi64>, %o: tensor<i64>) {
  // expected-error @+1 {{with an offset the table is a part, and vocab must be the rows of the whole, got none beside the part's 7 rows}}
  %0 = nn.embedding %t, %i offset = %o : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @embedding(%t: tensor<7x2xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{vocab must be at least 1, got: 0}}
  %0 = nn.embedding %t, %i vocab = 0 : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return
}

// -----

// Of a table that is all there, the rows are the vocabulary: data are held against it.
func.func @embedding(%t: tensor<7x2xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{vocab must be the table's 7 rows where no offset says which part of the whole they are, got: 20}}
  %0 = nn.embedding %t, %i vocab = 20 : (tensor<7x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @embedding(%t: tensor<7x2xf32>, %i: tensor<3xf32>) {
  // expected-error @+1 {{operand #1 must be statically shaped tensor of 32-bit signless integer or 64-bit signless integer values}}
  %0 = nn.embedding %t, %i : (tensor<7x2xf32>, tensor<3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @embedding_grad(%i: tensor<3xi64>, %ct: tensor<4x2xf32>) {
  // expected-error @+1 {{cotangent must be a row of the table per number, 'tensor<3x2xf32>', got: 'tensor<4x2xf32>'}}
  %0 = nn.embedding_grad %i, %ct : (tensor<3xi64>, tensor<4x2xf32>) -> tensor<7x2xf32>
  return
}

// -----

func.func @matmul(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{inner dimensions must be equal, got: 3 in a and 4 in b}}
  %0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul(%a: tensor<2x3xf32>, %b: tensor<7x3x5xf32>) {
  // expected-error @+1 {{batch dimensions must be equal or absent in b, got: 'tensor<2x3xf32>' and 'tensor<7x3x5xf32>'}}
  %0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<7x3x5xf32>) -> tensor<7x2x5xf32>
  return
}

// -----

func.func @matmul(%a: tensor<7x2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+1 {{sum_batch needs batch dimensions in a and b}}
  %0 = nn.matmul %a, %b {sum_batch} : (tensor<7x2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @+1 {{result must be 'tensor<2x5xf32>', got: 'tensor<5x2xf32>'}}
  %0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @reduce(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{reduced dimensions must be unique, got: array<i64: 1, 1>}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = nn.reduce sum %a dims = [1, 1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @targets(%a: tensor<8x3xf32>, %y: tensor<4xi64>) {
  // expected-error @+1 {{targets must have the shape of logits without the class dimension, got: 'tensor<4xi64>' for 'tensor<8x3xf32>'}}
  %0, %lse0 = nn.cross_entropy mean %a, %y : (tensor<8x3xf32>, tensor<4xi64>) -> tensor<f32>
  return
}

// -----

func.func @targets(%a: tensor<8x3xf32>, %y: tensor<8xi32>) {
  // expected-error @+1 {{ignore_index must fit targets of type 'i32', got: 5000000000}}
  %0, %lse0 = nn.cross_entropy mean %a, %y ignore_index = 5000000000 : (tensor<8x3xf32>, tensor<8xi32>) -> tensor<f32>
  return
}

// -----

func.func @update(%p: tensor<4xf32>, %lr: tensor<1xf32>) {
  // expected-error @+1 {{lr must be a scalar of element type 'f32', got: 'tensor<1xf32>'}}
  %0 = nn.sgd_update %p, %p lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<1xf32>
  return
}

// -----

func.func @update(%p: tensor<4xf32>, %lr: tensor<f32>) {
  // expected-error @+1 {{momentum must be in [0, 1), got: 1.000000e+00}}
  %0:2 = nn.momentum_update %p, %p, %p lr = %lr {momentum = 1.0 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return
}

// -----

// expected-error @+1 {{value must be dense elements}}
%0 = nn.constant sparse<[0], [1.0]> : tensor<4xf32>

// -----

func.func @attention(%q: tensor<2x6x4xf32>, %k: tensor<2x6x2x4xf32>) {
  // expected-error @+1 {{takes queries of [batch, sequence, kv heads, groups, head size] and keys of [batch, sequence, kv heads, head size], got: 'tensor<2x6x4xf32>' and 'tensor<2x6x2x4xf32>'}}
  %0:2 = nn.attention %q, %k, %k scale = 1.0 : (tensor<2x6x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf64>) {
  // expected-error @+1 {{queries and keys must have one element type, got: 'tensor<2x6x2x1x4xf32>' and 'tensor<2x6x2x4xf64>'}}
  %0:2 = nn.attention %q, %k, %k scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x3x4xf32>) {
  // expected-error @+1 {{queries and keys must agree in batch, kv heads and head size, got: 'tensor<2x6x2x1x4xf32>' and 'tensor<2x6x3x4xf32>'}}
  %0:2 = nn.attention %q, %k, %k scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x7x2x4xf32>) {
  // expected-error @+1 {{a causal mask or a window needs as many queries as keys, or positions, got: 6 and 7}}
  %0:2 = nn.attention %q, %k, %k causal scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x7x2x4xf32>, tensor<2x7x2x4xf32>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>) {
  // expected-error @+1 {{window must be at least 1, got: 0}}
  %0:2 = nn.attention %q, %k, %k window = 0 scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>) {
  // expected-error @+1 {{scale must be finite, got: INF}}
  %0:2 = nn.attention %q, %k, %k scale = 0x7FF0000000000000 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>, %s: tensor<2x6xi64>) {
  // expected-error @+1 {{takes the segments of queries and of keys, or none, got: 1}}
  %0:2 = nn.attention %q, %k, %k segments = %s scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6xi64>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x7x2x4xf32>, %s: tensor<2x6xi64>) {
  // expected-error @+1 {{segments must have the batch and sequence of queries and of keys, got: 'tensor<2x6xi64>' and 'tensor<2x6xi64>'}}
  %0:2 = nn.attention %q, %k, %k segments = %s, %s scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x7x2x4xf32>, tensor<2x7x2x4xf32>, tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>) {
  // expected-error @+1 {{result must be 'tensor<2x6x2x1x4xf32>', got: 'tensor<2x6x2x1x5xf32>'}}
  %0:2 = nn.attention %q, %k, %k scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> tensor<2x6x2x1x5xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>, %p: tensor<6xi64>) {
  // expected-error @+1 {{takes the positions of queries and of keys, or none, got: 1}}
  %0:2 = nn.attention %q, %k, %k positions = %p scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<6xi64>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x7x2x4xf32>, %p: tensor<6xi64>) {
  // expected-error @+1 {{positions must have the sequence of queries and of keys, got: 'tensor<6xi64>' and 'tensor<6xi64>'}}
  %0:2 = nn.attention %q, %k, %k positions = %p, %p causal scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x7x2x4xf32>, tensor<2x7x2x4xf32>, tensor<6xi64>, tensor<6xi64>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>, %p: tensor<2x6xi64>) {
  // expected-error @+1 {{positions must have the sequence of queries and of keys, got: 'tensor<2x6xi64>' and 'tensor<2x6xi64>'}}
  %0:2 = nn.attention %q, %k, %k positions = %p, %p scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6xi64>, tensor<2x6xi64>) -> tensor<2x6x2x1x4xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x6x2x1x4xbf16>, %k: tensor<2x6x2x4xbf16>) {
  // expected-error @+1 {{result must be 'tensor<2x6x2x1x4xbf16>', or that in 'f32', got: 'tensor<2x6x2x1x4xf64>'}}
  %0:2 = nn.attention %q, %k, %k scale = 1.0 : (tensor<2x6x2x1x4xbf16>, tensor<2x6x2x4xbf16>, tensor<2x6x2x4xbf16>) -> tensor<2x6x2x1x4xf64>
  return
}

// -----

func.func @attention_grad(%q: tensor<2x6x2x1x4xbf16>, %k: tensor<2x6x2x4xbf16>, %o: tensor<2x6x2x1x4xf64>, %l: tensor<2x6x2x1xf32>) {
  // expected-error @+1 {{o must be 'tensor<2x6x2x1x4xbf16>', or that in 'f32', got: 'tensor<2x6x2x1x4xf64>'}}
  %0:3 = nn.attention_grad %o, %q, %k, %k, %o, %l scale = 1.0 : (tensor<2x6x2x1x4xf64>, tensor<2x6x2x1x4xbf16>, tensor<2x6x2x4xbf16>, tensor<2x6x2x4xbf16>, tensor<2x6x2x1x4xf64>, tensor<2x6x2x1xf32>) -> (tensor<2x6x2x1x4xbf16>, tensor<2x6x2x4xbf16>, tensor<2x6x2x4xbf16>)
  return
}

// -----

func.func @attention_grad(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>, %l: tensor<2x6x2x1xf32>) {
  // expected-error @+1 {{dq must be 'tensor<2x6x2x1x4xf32>', got: 'tensor<2x6x2x1x4xbf16>'}}
  %0:3 = nn.attention_grad %q, %q, %k, %k, %q, %l scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x1x4xf32>, tensor<2x6x2x1xf32>) -> (tensor<2x6x2x1x4xbf16>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>)
  return
}

// -----

func.func @attention_grad(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>, %l: tensor<2x6x2x1xf32>) {
  // expected-error @+1 {{dk must be 'tensor<2x6x2x4xf32>', got: 'tensor<2x7x2x4xf32>'}}
  %0:3 = nn.attention_grad %q, %q, %k, %k, %q, %l scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x1x4xf32>, tensor<2x6x2x1xf32>) -> (tensor<2x6x2x1x4xf32>, tensor<2x7x2x4xf32>, tensor<2x7x2x4xf32>)
  return
}

// -----

func.func @attention_grad(%q: tensor<2x6x2x1x4xbf16>, %k: tensor<2x6x2x4xbf16>, %l: tensor<2x6x2x1xf32>) {
  // expected-error @+1 {{dq, dk and dv must have one element type, got: 'tensor<2x6x2x1x4xbf16>' and 'tensor<2x6x2x4xf32>'}}
  %0:3 = nn.attention_grad %q, %q, %k, %k, %q, %l scale = 1.0 : (tensor<2x6x2x1x4xbf16>, tensor<2x6x2x1x4xbf16>, tensor<2x6x2x4xbf16>, tensor<2x6x2x4xbf16>, tensor<2x6x2x1x4xbf16>, tensor<2x6x2x1xf32>) -> (tensor<2x6x2x1x4xbf16>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>)
  return
}

// -----

func.func @attention_grad(%q: tensor<2x6x2x1x4xf32>, %k: tensor<2x6x2x4xf32>, %l: tensor<2x6x2xf32>) {
  // expected-error @+1 {{lse must be 'tensor<2x6x2x1xf32>', got: 'tensor<2x6x2xf32>'}}
  %0:3 = nn.attention_grad %q, %q, %k, %k, %q, %l scale = 1.0 : (tensor<2x6x2x1x4xf32>, tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x1x4xf32>, tensor<2x6x2xf32>) -> (tensor<2x6x2x1x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>)
  return
}

// -----

func.func @dropout(%x: tensor<8xf32>) {
  // expected-error @+1 {{rate must be in [0, 1), got: 1.000000e+00}}
  %0 = nn.dropout %x rate = 1.0 id = 0 : tensor<8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8xf32>) {
  // expected-error @+1 {{rate must be in [0, 1), got: nan}}
  %0 = nn.dropout %x rate = 0x7FF8000000000000 id = 0 : tensor<8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8xf32>) {
  // expected-error @+1 {{id must be in [0, 2^32), got: 4294967296}}
  %0 = nn.dropout %x rate = 0.1 id = 4294967296 : tensor<8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{takes a seed and a step, or none, got a seed}}
  %0 = "nn.dropout"(%x, %s) <{rate = 0.1 : f64, id = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (tensor<8xf32>, tensor<i64>) -> tensor<8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8xf32>) {
  // expected-error @+1 {{takes the offset and the shape of the tensor that it is a part of, or none, got a shape}}
  %0 = "nn.dropout"(%x) <{rate = 0.1 : f64, id = 0 : i64, global = array<i64: 16>, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{global must be the shape of a tensor that holds 'tensor<8xf32>', got: [7]}}
  %0 = nn.dropout %x rate = 0.1 id = 0 seed = %s step = %s offset = %s global = [7] : tensor<8xf32>
  return
}

// -----

func.func @grad(%a: tensor<8x3xf32>, %y: tensor<8xi64>, %l: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error @+1 {{failed to verify that lse has one number per row of logits}}
  %0 = "nn.cross_entropy_grad"(%a, %y, %s, %s) : (tensor<8x3xf32>, tensor<8xi64>, tensor<f32>, tensor<f32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @row_norm(%x: tensor<f32>, %p: tensor<1xf32>) {
  // expected-error @+1 {{input must have a dimension to normalise over, got: 'tensor<f32>'}}
  %0:2 = nn.rms_norm %x, %p eps = 1.0e-5 : tensor<f32>, tensor<1xf32>
  return
}

// -----

func.func @row_norm(%x: tensor<4x2xf32>, %p: tensor<4xf32>) {
  // expected-error @+1 {{scale and bias must be 'tensor<2xf32>', got: 'tensor<4xf32>'}}
  %0:3 = nn.layer_norm %x, %p, %p eps = 1.0e-5 : tensor<4x2xf32>, tensor<4xf32>
  return
}

// -----

func.func @row_norm(%x: tensor<4x2xbf16>, %p: tensor<2xf32>) {
  // expected-error @+1 {{scale must be 'tensor<2xbf16>', got: 'tensor<2xf32>'}}
  %0:2 = nn.rms_norm %x, %p eps = 1.0e-5 : tensor<4x2xbf16>, tensor<2xf32>
  return
}

// -----

func.func @row_norm(%x: tensor<4x2xf32>, %p: tensor<2xf32>) {
  // expected-error @+1 {{eps must be at least 0, got: -1}}
  %0:3 = nn.layer_norm %x, %p, %p eps = -1.0 : tensor<4x2xf32>, tensor<2xf32>
  return
}

// -----

func.func @rope(%x: tensor<4x2xf32>, %p: tensor<2xi64>) {
  // expected-error @+1 {{input must have batch, sequence and a dimension to rotate, got: 'tensor<4x2xf32>'}}
  %0 = nn.rope %x, %p base = 10000.0 : tensor<4x2xf32>, tensor<2xi64>
  return
}

// -----

func.func @rope(%x: tensor<4x2x3xf32>, %p: tensor<2xi64>) {
  // expected-error @+1 {{last dimension must be even, since pairs are rotated, got: 3}}
  %0 = nn.rope %x, %p base = 10000.0 : tensor<4x2x3xf32>, tensor<2xi64>
  return
}

// -----

func.func @rope(%x: tensor<4x2x6xf32>, %p: tensor<4xi64>) {
  // expected-error @+1 {{positions must be those of dimension 1 of the input, or of dimensions 0 and 1, got: 'tensor<4xi64>' for 'tensor<4x2x6xf32>'}}
  %0 = nn.rope %x, %p base = 10000.0 : tensor<4x2x6xf32>, tensor<4xi64>
  return
}

// -----

func.func @rope(%x: tensor<4x2x6xf32>, %p: tensor<2xi64>) {
  // expected-error @+1 {{base must be positive, got: 0}}
  %0 = nn.rope %x, %p base = 0.0 : tensor<4x2x6xf32>, tensor<2xi64>
  return
}

// -----

func.func @rope_table(%p: tensor<2xi64>) {
  // expected-error @+1 {{tables must have the dimensions of positions and one of pairs, got: 'tensor<3x4xf32>' for 'tensor<2xi64>'}}
  %0:2 = nn.rope_table %p base = 10000.0 : tensor<2xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @rotate(%x: tensor<4x5x3x6xf32>, %t: tensor<5x6xf32>) {
  // expected-error @+1 {{input must have batch, sequence, and a dimension of 2 before the last, got: 'tensor<4x5x3x6xf32>'}}
  %0 = nn.rotate %x, %t, %t : tensor<4x5x3x6xf32>, tensor<5x6xf32>
  return
}

// -----

func.func @rotate(%x: tensor<4x5x2x6xf32>, %t: tensor<4x6xf32>) {
  // expected-error @+1 {{tables must have dimension 1 of the input, or dimensions 0 and 1, and the last one, got: 'tensor<4x6xf32>' for 'tensor<4x5x2x6xf32>'}}
  %0 = nn.rotate %x, %t, %t : tensor<4x5x2x6xf32>, tensor<4x6xf32>
  return
}

// -----

func.func @rotate(%x: tensor<4x5x2x6xbf16>, %t: tensor<5x6xbf16>) {
  // expected-error @+1 {{tables must have elements of type 'f32', got: 'tensor<5x6xbf16>'}}
  %0 = nn.rotate %x, %t, %t : tensor<4x5x2x6xbf16>, tensor<5x6xbf16>
  return
}

// -----

// MLIR keeps what an op's braces hold besides its attributes; a mask that is misspelt would not mask.
func.func @unknown(%q: tensor<1x4x1x1x2xf32>, %k: tensor<1x4x1x2xf32>) {
  // expected-error @+1 {{unknown attribute 'casual', it knows: causal, scale, window}}
  %o, %lse = nn.attention %q, %k, %k scale = 1.0 {casual} : (tensor<1x4x1x1x2xf32>, tensor<1x4x1x2xf32>, tensor<1x4x1x2xf32>) -> tensor<1x4x1x1x2xf32>
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{unknown attribute 'layer', it knows: none}}
  %0 = nn.add %x, %x {layer = "h.0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// Of no dialect, though it looks so.
func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{unknown attribute 'nm.layer', it knows: none}}
  %0 = nn.neg %x {nm.layer = "h.0"} : tensor<4xf32>
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{unknown attribute 'nn.layr', the nn dialect knows on ops: nn.layer, nn.recompute, and on functions: nn.evaluation}}
  %0 = nn.neg %x {nn.layr = "h.0"} : tensor<4xf32>
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer' must be a name, got: 0 : i64}}
  %0 = nn.neg %x {nn.layer = 0} : tensor<4xf32>
  return
}

// -----

// What explanations print is one line of text.
func.func @escapes(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer' must hold no control characters, got: "h.0\0A  removed by nothing"}}
  %0 = nn.neg %x {nn.layer = "h.0\0A  removed by nothing"} : tensor<4xf32>
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.evaluation' is a unit attribute of functions}}
  %0 = nn.neg %x {nn.evaluation} : tensor<4xf32>
  return
}

// -----

func.func @gelu_without_form(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected one of tanh, erf, got: no word}}
  %0 = nn.gelu %x : tensor<4xf32>
  return
}

// -----

func.func @unknown_predicate(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected one of eq, ne, lt, le, gt, ge, got: less}}
  %0 = nn.compare less %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @zigzag(%x: tensor<2x12xi64>) {
  // expected-error @+1 {{dimension must be in [0, 2), got: 2}}
  %0 = nn.zigzag %x dim = 2 ranks = 4 : tensor<2x12xi64>
  return
}

// -----

func.func @zigzag(%x: tensor<2x12xi64>) {
  // expected-error @+1 {{ranks must be at least 1, got: 0}}
  %0 = nn.zigzag %x dim = 1 ranks = 0 : tensor<2x12xi64>
  return
}

// -----

func.func @zigzag(%x: tensor<2x12xi64>) {
  // expected-error @+1 {{result must be 'tensor<2x12xi64>' where no offset says which part of it this is, got: 'tensor<2x3xi64>'}}
  %0 = nn.zigzag %x dim = 1 ranks = 4 : tensor<2x12xi64> -> tensor<2x3xi64>
  return
}

// -----

func.func @zigzag(%x: tensor<2x12xi64>, %o: tensor<i64>) {
  // expected-error @+1 {{only dimension 1 may change, got: 'tensor<2x12xi64>' and 'tensor<1x3xi64>'}}
  %0 = nn.zigzag %x dim = 1 ranks = 4 offset = %o : tensor<2x12xi64> -> tensor<1x3xi64>
  return
}

// -----

func.func @zigzag(%x: tensor<2x12xi64>, %o: tensor<i64>) {
  // expected-error @+1 {{element types must agree, got: 'tensor<2x12xi64>' and 'tensor<2x3xi32>'}}
  %0 = nn.zigzag %x dim = 1 ranks = 4 offset = %o : tensor<2x12xi64> -> tensor<2x3xi32>
  return
}

// -----

func.func @dropout(%x: tensor<8x4xf32>, %p: tensor<8xi64>) {
  // expected-error @+1 {{takes positions and the dimension that they are of, or none, got positions}}
  %0 = "nn.dropout"(%x, %p) <{rate = 0.1 : f64, id = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>}> : (tensor<8x4xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{takes positions and the dimension that they are of, or none, got a dimension}}
  %0 = "nn.dropout"(%x) <{rate = 0.1 : f64, id = 0 : i64, dim = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @dropout(%x: tensor<8x4xf32>, %p: tensor<8xi64>) {
  // expected-error @+1 {{dimension must be in [0, 2), got: -1}}
  %0 = nn.dropout %x rate = 0.1 id = 0 positions = %p dim = -1 : tensor<8x4xf32>, tensor<8xi64>
  return
}

// -----

func.func @dropout(%x: tensor<8x4xf32>, %p: tensor<8xi64>) {
  // expected-error @+1 {{positions must be one for each row of dimension 1 of 'tensor<8x4xf32>', got: 'tensor<8xi64>'}}
  %0 = nn.dropout %x rate = 0.1 id = 0 positions = %p dim = 1 : tensor<8x4xf32>, tensor<8xi64>
  return
}

// -----

func.func @dropout(%x: tensor<8x4xf32>, %s: tensor<i64>, %p: tensor<8xi64>) {
  // expected-error @+1 {{takes the offset and the shape of the tensor that it is a part of, or none, got an offset}}
  %0 = nn.dropout %x rate = 0.1 id = 0 seed = %s step = %s offset = %s positions = %p dim = 0 : tensor<8x4xf32>, tensor<8xi64>
  return
}

// -----

func.func @merge_attention(%o: tensor<2x6x2x3x4xbf16>, %l: tensor<2x6x2x3xf32>) {
  // expected-error @+1 {{'o' must be statically shaped tensor of 32-bit float or 64-bit float values, but got 'tensor<2x6x2x3x4xbf16>'}}
  %0:2 = nn.merge_attention %o, %l, %o, %l : tensor<2x6x2x3x4xbf16>
  return
}

// -----

func.func @merge_attention(%o: tensor<f32>) {
  // expected-error @+1 {{results of attention must have a row per query, got: 'tensor<f32>'}}
  %0:2 = nn.merge_attention %o, %o, %o, %o : tensor<f32>
  return
}

// -----

func.func @merge_attention(%o: tensor<2x4xf32>, %l: tensor<3xf32>) {
  // expected-error @+1 {{failed to verify that lse0 has one number per query}}
  %0:2 = "nn.merge_attention"(%o, %l, %o, %l) : (tensor<2x4xf32>, tensor<3xf32>, tensor<2x4xf32>, tensor<3xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return
}

// -----

func.func @f(%a: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+1 {{of terms of a sum must be between floats, got: 'tensor<4xf32>' and 'tensor<4xi64>'}}
  %0 = nn.cast %a of_terms : tensor<4xf32> -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
