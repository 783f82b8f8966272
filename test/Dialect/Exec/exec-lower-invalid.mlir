// RUN: shoal-opt %s -split-input-file -verify-diagnostics --exec-lower

// A program has one step function.
// expected-note @+1 {{the first one is here}}
func.func @a() {
  return
}
// expected-error @+1 {{a program has one step function, and one of evaluation; this is a second one}}
func.func @b() {
  return
}

// -----

// Arguments say what they are.
// expected-error @+1 {{argument 0 must say what it is: nn.input, nn.param, nn.buffer, nn.state, nn.step or nn.valid_rows}}
func.func @a(%x: tensor<2xf32>) {
  return
}

// -----

// So do results.
// expected-error @+1 {{result 0 must say what it is: nn.loss, nn.metric, nn.output, nn.grad or nn.updates}}
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

// -----

// Batched inputs have one number of rows.
// expected-error @+1 {{batched inputs must have one number of rows, got: 2 in "x" and 3 here}}
func.func @a(%x: tensor<2xf32> {nn.input = "x"}, %y: tensor<3xf32> {nn.input = "y"}) {
  return
}

// -----

// Kernels come first.
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  // expected-error @+1 {{is in no kernel (run exec-outline-kernels)}}
  %0 = nn.relu %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Collectives act on equal chunks.
dist.mesh @mesh <["data"=2]>
func.func @a(%x: tensor<2x2xf32> {nn.input = "x"}) -> (tensor<2x3xf32> {nn.output = "y"}) {
  // expected-error @+1 {{must act on dimension 0 (run dist-expand-collectives), got: 1}}
  %0 = dist.all_gather {"data"} dim = 1 %x : tensor<2x2xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Control flow is folded first.
dist.mesh @mesh <["data"=2]>
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  %me = dist.axis_index {"data"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %me, %zero : index
  // expected-error @+1 {{cannot be lowered: a rank program is one straight line (run dist-fold-control-flow)}}
  scf.if %first {
    dist.send {"data"} %x to %me : tensor<2xf32>
  }
  return %x : tensor<2xf32>
}

// -----

// What only one position has received, the other cannot send.
dist.mesh @mesh <["data"=2]>
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  dist.send {"data"} %x to %one {dist.at = array<i64: 0>} : tensor<2xf32>
  // expected-note @+1 {{the value comes from here}}
  %0 = dist.recv {"data"} from %zero {dist.at = array<i64: 1>} : tensor<2xf32>
  // expected-error @+1 {{needs a value that mesh position 0 does not have}}
  dist.send {"data"} %0 to %one {dist.at = array<i64: 0>} : tensor<2xf32>
  return %x : tensor<2xf32>
}

// -----

// Some position has what is returned.
dist.mesh @mesh <["data"=2]>
func.func private @k_add(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = dist.recv {"data"} from %one {dist.at = array<i64: 0>} : tensor<2xf32>
  %b = dist.recv {"data"} from %zero {dist.at = array<i64: 1>} : tensor<2xf32>
  // expected-note @+1 {{the value comes from here}}
  %0 = exec.call @k_add(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // expected-error @+1 {{needs a value that no mesh position has}}
  return %0 : tensor<2xf32>
}

// -----

// Who reads an argument has its new value, too.
dist.mesh @mesh <["data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
func.func @a(%w: tensor<2xf32> {nn.param = #nn.param<"w", init = ones>}) -> (tensor<2xf32> {nn.updates = "w"}, tensor<2xf32> {nn.output = "y"}) {
  // expected-error @+1 {{the new value of "w" must be at every mesh position that uses the argument, and is not at position 1; send it there, or compute it there, too}}
  %0 = exec.call @k(%w) {dist.at = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = exec.call @k(%w) {dist.at = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// -----

// So has who makes it the new value of another, in whichever order the results come.
dist.mesh @mesh <["data"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
func.func @a(%w: tensor<2xf32> {nn.param = #nn.param<"w", init = ones>}, %old: tensor<2xf32> {nn.buffer = #nn.buffer<"old", init = 0.0>})
    -> (tensor<2xf32> {nn.updates = "w"}, tensor<2xf32> {nn.updates = "old"}) {
  // expected-error @+1 {{the new value of "w" must be at every mesh position that uses the argument, and is not at position 1; send it there, or compute it there, too}}
  %0 = exec.call @k(%w) {dist.at = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %w : tensor<2xf32>, tensor<2xf32>
}

// -----

// Peers lie in the group.
dist.mesh @mesh <["data"=2]>
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  %me = dist.axis_index {"data"} * 1 : index
  %one = arith.constant 1 : index
  %next = arith.addi %me, %one : index
  // expected-error @+1 {{peer of mesh position 1 must be a position of the group of 2, got: 2}}
  dist.send {"data"} %x to %next : tensor<2xf32>
  return %x : tensor<2xf32>
}

// -----

// Buckets of one group do not overlap.
func.func @a(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %0 = dist.pack %x[0:4] group 0 at 0 : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{buckets of group 0 overlap at element 2}}
  %1 = dist.pack %x[0:4] group 0 at 2 : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Offsets of all storage fit 64 bits, with room to spare.
// expected-error @+1 {{storage of a step must fit 2^62 bytes, exceeded by: 'tensor<1152921504606846976xf32>'}}
func.func @a(%x: tensor<1152921504606846976xf32> {nn.input = "x"}, %y: tensor<1152921504606846976xf32> {nn.input = "y"}) {
  return
}

// -----

// So does each tensor.
// expected-error @+1 {{storage of a step must fit 2^62 bytes, exceeded by: 'tensor<4294967296x4294967296xf32>'}}
func.func @a(%x: tensor<4294967296x4294967296xf32> {nn.input = "x"}) {
  return
}

// -----

// And what kernels ask for.
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel, exec.workspace = 4611686018427387904}
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  // expected-error @+1 {{storage of a step must fit 2^62 bytes, exceeded by a workspace of 4611686018427387904 bytes}}
  %0 = exec.call @k(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Storage is made of elements that the runtime knows, and of at least one.
dist.mesh @mesh <["x"=2]>
func.func @a(%x: tensor<4xf32> {nn.input = #nn.input<"x", unbatched>}) {
  %p = arith.constant 1 : index
  // expected-error @+1 {{element type of a buffer must be f32, f64, bf16, i32, i64 or i1, got: 'f16'}}
  %q = dist.recv {"x"} from %p : tensor<4xf16>
  dist.send {"x"} %q to %p : tensor<4xf16>
  return
}

// -----

func.func private @k(tensor<0x2xf32>) -> tensor<0x2xf32> attributes {exec.kernel}
// expected-error @+1 {{a tensor of a step must have a static shape and elements, got: 'tensor<0x2xf32>'}}
func.func @a(%x: tensor<0x2xf32> {nn.input = #nn.input<"x", unbatched>}) -> (tensor<0x2xf32> {nn.output = "y"}) {
  %0 = exec.call @k(%x) : (tensor<0x2xf32>) -> tensor<0x2xf32>
  return %0 : tensor<0x2xf32>
}

// -----

// Nor what a group of messages has received, when only one position runs the group.
dist.mesh @mesh <["data"=2]>
func.func @a(%x: tensor<2xf32> {nn.input = "x"}) -> (tensor<2xf32> {nn.output = "y"}) {
  %me = dist.axis_index {"data"} * 1 : index
  %one = arith.constant 1 : index
  %other = arith.subi %one, %me : index
  dist.send {"data"} %x to %other {dist.at = array<i64: 1>} : tensor<2xf32>
  // expected-note @+1 {{the value comes from here}}
  %0 = dist.group {
    %1 = dist.recv {"data"} from %other : tensor<2xf32>
    dist.yield %1 : tensor<2xf32>
  } {dist.at = array<i64: 0>} : tensor<2xf32>
  // expected-error @+1 {{needs a value that mesh position 1 does not have}}
  dist.send {"data"} %0 to %other {dist.at = array<i64: 1>} : tensor<2xf32>
  return %x : tensor<2xf32>
}

// -----

// And where buckets lie in their groups, whose storage they share.
func.func @a(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  // expected-error @+1 {{storage of a step must fit 2^62 bytes, exceeded by: 'tensor<4xf32>' at element 1152921504606846973 of its group}}
  %0 = dist.pack %x[0:4] group 0 at 1152921504606846973 : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Each group has its own.
func.func @a(%x: tensor<4xf32> {nn.input = "x"}) -> (tensor<4xf32> {nn.output = "y"}) {
  %0 = dist.pack %x[0:4] group 0 at 576460752303423488 : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{storage of a step must fit 2^62 bytes, exceeded by: 'tensor<4xf32>' at element 576460752303423488 of its group}}
  %1 = dist.pack %x[0:4] group 1 at 576460752303423488 : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Of a result each part is somewhere.
dist.mesh @mesh <["pipe"=2]>
func.func private @k(tensor<2xf32>) -> tensor<2xf32> attributes {exec.kernel}
func.func @a(%x: tensor<2xf32> {nn.input = #nn.input<"x", unbatched>})
    -> (tensor<2xf32> {nn.output = "y", dist.global = #dist.global<0, tensor<4xf32>, <@mesh, [{"pipe"}]>>}) {
  // expected-error @+1 {{each part of result 'y' must be at a mesh position, and that of position 0 is at none; compute it there, or leave its axis out of its sharding}}
  %0 = exec.call @k(%x) {dist.at = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
