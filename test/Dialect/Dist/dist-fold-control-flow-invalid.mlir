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

// Equal collectives of two branches meet directly in these; what is deeper in one of them is another one.
dist.mesh @mesh <["x"=2]>
func.func @deeper(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  scf.if %first {
    // expected-error @+1 {{'dist.barrier' op needs every position of its group: position 1 does not enter it, position 0 does}}
    dist.barrier {"x"}
  } else {
    scf.if %first {
    } else {
      dist.barrier {"x"}
    }
  }
  return %a : tensor<f32>
}

// -----

// A loop that one position leaves early.
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

// -----

// Who runs a group of messages is said once, by control flow or by dist.at.
dist.mesh @mesh <["x"=4]>
func.func @twice(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi ule, %i, %one : index
  %0 = scf.if %first -> tensor<f32> {
    // expected-error @+1 {{'dist.group' op says dist.at below control flow that says it already}}
    %1 = dist.group {
      dist.send {"x"} %a to %i : tensor<f32>
      %2 = dist.recv {"x"} from %i : tensor<f32>
      dist.yield %2 : tensor<f32>
    } {dist.at = array<i64: 1, 3>} : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    scf.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// So it is for a collective alone.
dist.mesh @mesh <["y"=2, "x"=2]>
func.func @twice_alone(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"y"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  scf.if %first {
    // expected-error @+1 {{'dist.barrier' op says dist.at below control flow that says it already}}
    dist.barrier {"x"} {dist.at = array<i64: 0, 1>}
  }
  return %a : tensor<f32>
}

// -----

// A message that its group leaves to nobody.
dist.mesh @mesh <["x"=2]>
func.func @nobody(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  dist.group {
    // expected-error @+1 {{'dist.send' op runs at no mesh position: the group around it says dist.at, too}}
    dist.send {"x"} %a to %i {dist.at = array<i64: 1>} : tensor<f32>
    dist.yield
  } {dist.at = array<i64: 0>}
  scf.if %first {
  }
  return %a : tensor<f32>
}

// -----

// Bounds have at most 64 bits; nothing is cut off.
dist.mesh @mesh <["x"=2]>
func.func @wide(%a: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{must be an integer of at most 64 bits, got: 'i128'}}
  %zero = arith.constant 0 : i128
  %one = arith.constant 1 : i128
  %end = arith.constant 18446744073709551617 : i128
  scf.for %k = %zero to %end step %one : i128 {
    dist.barrier {"x"}
  }
  return %a : tensor<f32>
}

// -----

// Branches meet at equal collectives only.
dist.mesh @mesh <["x"=2]>
func.func @unequal(%a: tensor<f32>) -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  %0 = scf.if %first -> tensor<f32> {
    // expected-error @+1 {{needs every position of its group: position 1 does not enter it, position 0 does}}
    %1 = dist.all_reduce {"x"} sum %a : tensor<f32>
    scf.yield %1 : tensor<f32>
  } else {
    %1 = dist.all_reduce {"x"} max %a : tensor<f32>
    scf.yield %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}
