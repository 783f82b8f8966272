// Programs that cannot be run: every refusal names the op, its place and what is wrong.
// RUN: shoal-opt %s -split-input-file -verify-diagnostics --interpret="all-ranks" -o /dev/null

// Both ranks send first; nobody receives.
dist.mesh @mesh <["x"=2]>
func.func @both_send() -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  %peer = arith.subi %one, %i : index
  %x = nn.constant dense<1.0> : tensor<2xf32>
  // expected-error @below {{deadlock: rank 0 waits in dist.send at}}
  dist.send {"x"} %x to %peer : tensor<2xf32>
  %0 = dist.recv {"x"} from %peer : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// One rank never enters the collective.
dist.mesh @mesh <["x"=2]>
func.func @missing_rank(%x: tensor<2xf32>) -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  %0 = scf.if %first -> tensor<2xf32> {
    // expected-error @below {{; rank 1 has ended}}
    %1 = dist.all_reduce {"x"} sum %x : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    scf.yield %x : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// Ranks of one group call different collectives.
dist.mesh @mesh <["x"=2]>
func.func @mismatch(%x: tensor<2xf32>) -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  %0 = scf.if %first -> tensor<2xf32> {
    %1 = dist.all_reduce {"x"} sum %x : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    // expected-error @below {{ranks call different collectives on the same axes: rank 1 is in dist.all_reduce}}
    %1 = dist.all_reduce {"x"} max %x : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// Equal ones meet directly in the branches of one op, as the compiler has it, and not deeper in one of them.
dist.mesh @mesh <["x"=2]>
func.func @deeper(%x: tensor<2xf32>) -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  %0 = scf.if %first -> tensor<2xf32> {
    %1 = dist.all_reduce {"x"} sum %x : tensor<2xf32>
    scf.yield %1 : tensor<2xf32>
  } else {
    %1 = scf.if %first -> tensor<2xf32> {
      scf.yield %x : tensor<2xf32>
    } else {
      // expected-error @below {{ranks meet at equal collectives only directly in branches of one op: rank 1 is in dist.all_reduce}}
      %2 = dist.all_reduce {"x"} sum %x : tensor<2xf32>
      scf.yield %2 : tensor<2xf32>
    }
    scf.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// A message is received with another type than it was sent.
dist.mesh @mesh <["x"=2]>
func.func @message_type(%x: tensor<2xf32>) -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %i, %zero : index
  scf.if %first {
    dist.send {"x"} %x to %one : tensor<2xf32>
  } else {
    // expected-error @below {{a message is sent as 'tensor<2xf32>' by dist.send}}
    %1 = dist.recv {"x"} from %zero : tensor<3xf32>
  }
  return %x : tensor<2xf32>
}

// -----

// The peer is a position on the axes.
dist.mesh @mesh <["x"=2]>
func.func @peer(%x: tensor<2xf32>) {
  %three = arith.constant 3 : index
  // expected-error @below {{sends to a peer outside [0, 2) on rank 0, got: 3}}
  dist.send {"x"} %x to %three : tensor<2xf32>
  return
}

// -----

// What a group receives is there when the group ends, not before.
dist.mesh @mesh <["x"=1]>
func.func @too_early(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0 : index
  %0 = dist.group {
    dist.send {"x"} %x to %zero : tensor<2xf32>
    %1 = dist.recv {"x"} from %zero : tensor<2xf32>
    // expected-error @below {{uses a value before it is there: dist.recv at}}
    %2 = nn.neg %1 : tensor<2xf32>
    dist.yield %2 : tensor<2xf32>
  } : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Only what has reference semantics runs.
dist.mesh @mesh <["x"=2]>
func.func @unsupported(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'arith.addf' is not a scalar integer op: the interpreter does not run it}}
  %0 = arith.addf %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Integers of more than 64 bits are refused, not cut off.
dist.mesh @mesh <["x"=2]>
func.func @wide() -> tensor<i64> {
  // expected-error @below {{must be an integer of at most 64 bits, got: 'i128'}}
  %big = arith.constant 18446744073709551617 : i128
  %low = arith.trunci %big : i128 to i64
  %0 = tensor.from_elements %low : tensor<i64>
  return %0 : tensor<i64>
}

// -----

// What no machine divides.
dist.mesh @mesh <["x"=2]>
func.func @division() -> tensor<i64> {
  %zero = arith.constant 0 : i64
  // expected-error @below {{'arith.divsi' op cannot be folded at mesh position 0}}
  %q = arith.divsi %zero, %zero : i64
  %0 = tensor.from_elements %q : tensor<i64>
  return %0 : tensor<i64>
}

// -----

// expected-error @below {{all-ranks needs a dist.mesh in the module}}
module {
  func.func @no_mesh() {
    return
  }
}

// -----

// A value that no machine holds.
dist.mesh @mesh <["x"=2]>
func.func @too_large() -> tensor<f32> {
  %x = nn.constant dense<1.0> : tensor<f32>
  // expected-error @below {{of this machine to be interpreted, got: 'tensor<1000000000000xf32>'}}
  %0 = nn.broadcast %x : tensor<f32> -> tensor<1000000000000xf32>
  %1 = nn.reduce sum %0 dims = [0] : tensor<1000000000000xf32> -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A position that does not run what computes a value does not have it.
dist.mesh @mesh <["x"=2]>
func.func @elsewhere(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = nn.neg %x {dist.at = array<i64: 0>} : tensor<2xf32>
  // What a position does not take need not be there.
  %1 = dist.select [0, 1] %0, %x : tensor<2xf32>
  // expected-error @below {{uses a value that mesh position 1 does not have: nn.neg at}}
  %2 = nn.add %0, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
