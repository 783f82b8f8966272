// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-fold-control-flow="max-ops=1000"

// A collective that only a part of its group reaches would never end.
dist.mesh @mesh <["x"=4]>
func.func @part(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %three = arith.constant 3 : index
  %most = arith.cmpi ult, %i, %three : index
  scf.if %most {
    // expected-error @+1 {{'dist.barrier' op needs every position of its group: position 3 does not enter it, position 0 does}}
    dist.barrier {"x"}
  }
  return %a : tensor<f32>
}

// -----

// The same in a loop that one position leaves early.
dist.mesh @mesh <["x"=2]>
func.func @early(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %end = arith.subi %two, %i : index
  %0 = scf.for %k = %zero to %end step %one iter_args(%x = %a) -> tensor<f32> {
    // expected-error @+1 {{needs every position of its group: position 1 does not enter it, position 0 does}}
    %1 = dist.all_reduce {"x"} sum %x : tensor<f32>
    scf.yield %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// What depends on data is not known before the program runs.
dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{control flow and peers may depend only on the position and on constants, got: 'tensor<i64>'}}
func.func @data(%a: tensor<f32>, %n: tensor<i64>) -> tensor<f32> {
  %i = tensor.extract %n[] : tensor<i64>
  %zero = arith.constant 0 : i64
  %is = arith.cmpi eq, %i, %zero : i64
  scf.if %is {
    dist.barrier {"x"}
  }
  return %a : tensor<f32>
}

// -----

// A program that would not fit is refused, not tried.
dist.mesh @mesh <["x"=2]>
func.func @long(%a: tensor<f32>) -> tensor<f32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 9223372036854775807 : index
  // expected-error @+1 {{control flow unrolls to more than 1000 ops (option max-ops)}}
  scf.for %k = %zero to %end step %one {
  }
  return %a : tensor<f32>
}

// -----

// Steps go forward.
dist.mesh @mesh <["x"=2]>
func.func @step(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  // expected-error @+1 {{steps must be at least 1, got: 0 at position 0}}
  scf.for %k = %zero to %zero step %i {
  }
  return %a : tensor<f32>
}

// -----

// A division that no machine can do.
dist.mesh @mesh <["x"=2]>
func.func @division(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  // expected-error @+1 {{cannot be folded at mesh position 0}}
  %q = arith.divui %one, %i : index
  %is = arith.cmpi eq, %q, %one : index
  scf.if %is {
    dist.barrier {"x"}
  }
  return %a : tensor<f32>
}

// -----

// Other control flow has no known end.
dist.mesh @mesh <["x"=2]>
func.func @while(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  // expected-error @+1 {{cannot be folded per position: of control flow only scf.if, scf.for and scf.index_switch can}}
  %0 = scf.while (%k = %i) : (index) -> index {
    %go = arith.cmpi ne, %k, %zero : index
    scf.condition(%go) %k : index
  } do {
  ^bb0(%k: index):
    scf.yield %zero : index
  }
  return %a : tensor<f32>
}

// -----

// Only a tensor<i64> is made of a scalar.
dist.mesh @mesh <["x"=2]>
func.func @type() -> tensor<1xindex> {
  %i = dist.axis_index {"x"} * 1 : index
  // expected-error @+1 {{makes a tensor<i64> of one scalar here, got: 'tensor<1xindex>'}}
  %0 = tensor.from_elements %i : tensor<1xindex>
  return %0 : tensor<1xindex>
}

// -----

// Positions need a mesh.
// expected-error @+1 {{has control flow over the positions of a mesh, but the module has no dist.mesh}}
func.func @alone(%a: tensor<f32>) -> tensor<f32> {
  %true = arith.constant true
  scf.if %true {
  }
  return %a : tensor<f32>
}
