// RUN: shoal-opt %s -split-input-file --dist-fold-control-flow | FileCheck %s -enable-var-scope
// What is folded computes what was written.
// RUN: shoal-opt %s -split-input-file --interpret="all-ranks" -o /dev/null > %t.written
// RUN: shoal-opt %s -split-input-file --dist-fold-control-flow --interpret="all-ranks" -o /dev/null > %t.folded
// RUN: diff %t.written %t.folded
// All of it keeps the contract of a local program, which a copy is folded for.
// RUN: shoal-opt %s -split-input-file --dist-verify-local -o /dev/null

// Both branches stay; messages say who runs them, and each position takes the result of its branch.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @branches
func.func @branches() -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: %[[A:.*]] = nn.constant
  %a = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %first = arith.cmpi eq, %i, %zero : index
  // CHECK-NOT: scf
  // CHECK: dist.send {"x"} %[[A]] to %{{.*}} {dist.at = array<i64: 0>}
  // CHECK: %[[GOT:.*]] = dist.recv {"x"} from %{{.*}} {dist.at = array<i64: 1>}
  // CHECK: %[[NEG:.*]] = nn.neg %[[GOT]]
  // CHECK: %[[R:.*]] = dist.select [0, 1] %[[A]], %[[NEG]] : tensor<2xf32>
  // CHECK: return %[[R]]
  %0 = scf.if %first -> tensor<2xf32> {
    dist.send {"x"} %a to %one : tensor<2xf32>
    scf.yield %a : tensor<2xf32>
  } else {
    %1 = dist.recv {"x"} from %zero : tensor<2xf32>
    %2 = nn.neg %1 : tensor<2xf32>
    scf.yield %2 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// Bounds may differ from position to position: position 2 goes round twice, position 0 not at all. A loop that
// nobody enters leaves no op.
dist.mesh @mesh <["x"=3]>
// CHECK-LABEL: func.func @loops
func.func @loops() -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: %[[A:.*]] = nn.constant
  %a = nn.constant dense<3.0> : tensor<f32>
  // CHECK-NEXT: %[[B:.*]] = nn.add %[[A]], %[[A]]
  // CHECK-NEXT: %[[C:.*]] = nn.add %[[B]], %[[B]]
  // CHECK-NEXT: %[[R:.*]] = dist.select [0, 1, 2] %[[A]], %[[B]], %[[C]] : tensor<f32>
  // CHECK-NEXT: return %[[R]]
  %0 = scf.for %k = %zero to %i step %one iter_args(%x = %a) -> tensor<f32> {
    %1 = nn.add %x, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  }
  scf.for %k = %one to %zero step %one {
    dist.barrier {"x"}
  }
  return %0 : tensor<f32>
}

// -----

// Scalars are carried, too: each position has its own. As a tensor they are a constant per position, or one for all.
dist.mesh @mesh <["x"=3]>
// CHECK-LABEL: func.func @scalars
func.func @scalars() -> (tensor<i64>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %0 = scf.for %k = %zero to %two step %one iter_args(%s = %i) -> index {
    %1 = arith.addi %s, %k : index
    %2 = arith.muli %1, %two : index
    scf.yield %2 : index
  }
  %3 = arith.index_cast %0 : index to i64
  // CHECK: %[[MINE:.*]] = dist.position_constant [2, 6, 10] : tensor<i64>
  %mine = tensor.from_elements %3 : tensor<i64>
  %4 = arith.index_cast %two : index to i64
  // CHECK: %[[ALL:.*]] = nn.constant dense<2> : tensor<i64>
  %all = tensor.from_elements %4 : tensor<i64>
  return %mine, %all : tensor<i64>, tensor<i64>
}

// -----

// A collective below a condition is fine where whole groups agree: here the rows of the mesh.
dist.mesh @mesh <["y"=2, "x"=2]>
// CHECK-LABEL: func.func @groups
func.func @groups() -> tensor<i64> {
  %row = dist.axis_index {"y"} * 1 : index
  %zero = arith.constant 0 : index
  %mine = dist.axis_index {"y", "x"} * 1 : tensor<i64>
  %first = arith.cmpi eq, %row, %zero : index
  // CHECK: dist.all_reduce {"x"} sum %{{.*}} {dist.at = array<i64: 0, 1>}
  // CHECK: dist.select [0, 0, 1, 1]
  %0 = scf.if %first -> tensor<i64> {
    %1 = dist.all_reduce {"x"} sum %mine : tensor<i64>
    scf.yield %1 : tensor<i64>
  } else {
    scf.yield %mine : tensor<i64>
  }
  return %0 : tensor<i64>
}

// -----

// A switch, and a select between tensors.
dist.mesh @mesh <["x"=4]>
// CHECK-LABEL: func.func @switch
func.func @switch() -> (tensor<i64>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  // CHECK-DAG: %[[A:.*]] = nn.constant dense<10>
  // CHECK-DAG: %[[B:.*]] = nn.constant dense<20>
  %a = nn.constant dense<10> : tensor<i64>
  %b = nn.constant dense<20> : tensor<i64>
  // CHECK: %[[SUM:.*]] = nn.add
  // CHECK: %[[FIRST:.*]] = dist.select [0, 1, 2, 0] %[[SUM]], %[[A]], %[[B]]
  %0 = scf.index_switch %i -> tensor<i64>
  case 1 {
    scf.yield %a : tensor<i64>
  }
  case 2 {
    scf.yield %b : tensor<i64>
  }
  default {
    %1 = nn.add %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
    scf.yield %1 : tensor<i64>
  }
  %low = arith.cmpi ule, %i, %one : index
  // CHECK: %[[SECOND:.*]] = dist.select [0, 0, 1, 1] %[[A]], %[[B]]
  %2 = arith.select %low, %a, %b : tensor<i64>
  return %0, %2 : tensor<i64>, tensor<i64>
}

// -----

// In a group of messages branches and loops decide who sends what; what is computed for a message comes before.
dist.mesh @mesh <["x"=3]>
// CHECK-LABEL: func.func @group
func.func @group() -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %isRoot = arith.cmpi eq, %i, %zero : index
  %a = nn.constant dense<2.0> : tensor<f32>
  // CHECK: nn.neg
  // CHECK: dist.group
  // CHECK-NOT: nn.neg
  // CHECK: dist.send {{.*}} {dist.at = array<i64: 0>}
  // CHECK: dist.send {{.*}} {dist.at = array<i64: 0>}
  // CHECK: dist.recv {"x"} from %{{[a-z0-9_]*}} : tensor<f32>
  %got = dist.group {
    scf.if %isRoot {
      scf.for %k = %one to %three step %one {
        %b = nn.neg %a : tensor<f32>
        dist.send {"x"} %b to %k : tensor<f32>
      }
      dist.send {"x"} %a to %zero : tensor<f32>
    }
    %0 = dist.recv {"x"} from %zero : tensor<f32>
    dist.yield %0 : tensor<f32>
  } : tensor<f32>
  return %got : tensor<f32>
}

// -----

// Without control flow nothing is touched: peers are folded when rows are made.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @straight
func.func @straight(%a: tensor<f32>) -> tensor<f32> {
  // CHECK: dist.axis_index
  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  // CHECK: arith.subi
  %other = arith.subi %one, %i : index
  %got = dist.group {
    dist.send {"x"} %a to %other : tensor<f32>
    %0 = dist.recv {"x"} from %other : tensor<f32>
    dist.yield %0 : tensor<f32>
  } : tensor<f32>
  return %got : tensor<f32>
}

// -----

// What a group of messages takes by position is chosen before it.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @chosen
func.func @chosen() -> (tensor<f32>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %other = arith.subi %one, %i : index
  %first = arith.cmpi eq, %i, %zero : index
  %a = nn.constant dense<1.0> : tensor<f32>
  %b = nn.constant dense<2.0> : tensor<f32>
  // CHECK-DAG: %[[V:.*]] = dist.select [0, 1] %{{.*}} : tensor<f32>
  // CHECK-DAG: %[[N:.*]] = dist.position_constant [1, 0] : tensor<i64>
  // CHECK: dist.group
  // CHECK-NOT: dist.select
  // CHECK: dist.send {"x"} %[[V]]
  // CHECK: dist.send {"x"} %[[N]]
  %got:2 = dist.group {
    %v = scf.if %first -> tensor<f32> {
      scf.yield %a : tensor<f32>
    } else {
      scf.yield %b : tensor<f32>
    }
    dist.send {"x"} %v to %other : tensor<f32>
    %number = arith.index_cast %other : index to i64
    %n = tensor.from_elements %number : tensor<i64>
    dist.send {"x"} %n to %other : tensor<i64>
    %0 = dist.recv {"x"} from %other : tensor<f32>
    %1 = dist.recv {"x"} from %other : tensor<i64>
    dist.yield %0, %1 : tensor<f32>, tensor<i64>
  } : tensor<f32>, tensor<i64>
  return %got#0, %got#1 : tensor<f32>, tensor<i64>
}

// -----

// A select between tensors is control flow, also where nothing else is.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @select
func.func @select() -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %i, %zero : index
  // CHECK-DAG: %[[A:.*]] = nn.constant dense<1.0{{.*}}>
  // CHECK-DAG: %[[B:.*]] = nn.constant dense<2.0{{.*}}>
  %a = nn.constant dense<1.0> : tensor<f32>
  %b = nn.constant dense<2.0> : tensor<f32>
  // CHECK: dist.select [0, 1] %[[A]], %[[B]]
  %0 = arith.select %first, %a, %b : tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Any scalar op that folds may steer, in the width of its type; a folder that would return what made an operand
// gets to see the operand only.
dist.mesh @mesh <["x"=3]>
// CHECK-LABEL: func.func @scalar_ops
func.func @scalar_ops() -> (tensor<i64>, tensor<i64>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 1 : index
  %two = arith.constant 2 : index
  %half = arith.ceildivsi %i, %two : index
  %half_i64 = arith.index_cast %half : index to i64
  // CHECK: dist.position_constant [0, 1, 1] : tensor<i64>
  %0 = tensor.from_elements %half_i64 : tensor<i64>
  %i_i64 = arith.index_cast %i : index to i64
  %low = arith.trunci %i_i64 : i64 to i8
  %most = arith.constant 126 : i8
  %sum = arith.addi %low, %most : i8
  %wrapped = arith.extsi %sum : i8 to i64
  // CHECK: dist.position_constant [126, 127, -128] : tensor<i64>
  %1 = tensor.from_elements %wrapped : tensor<i64>
  %less = arith.subi %i, %two : index
  %again = arith.addi %less, %two : index
  %again_i64 = arith.index_cast %again : index to i64
  // CHECK: dist.position_constant [0, 1, 2] : tensor<i64>
  %2 = tensor.from_elements %again_i64 : tensor<i64>
  return %0, %1, %2 : tensor<i64>, tensor<i64>, tensor<i64>
}

// -----

// What a group of messages says of itself holds for what is in it: the peer is asked of position 0 and 2 only.
dist.mesh @mesh <["x"=4]>
// CHECK-LABEL: func.func @group_at
func.func @group_at() -> tensor<f32> {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %other = arith.subi %two, %i : index
  %odd = arith.remui %i, %two : index
  %isOdd = arith.cmpi eq, %odd, %one : index
  %isRoot = arith.cmpi eq, %i, %zero : index
  %a = nn.constant dense<3.0> : tensor<f32>
  // CHECK: dist.group
  // CHECK: dist.send {{.*}} {dist.at = array<i64: 0, 2>}
  // CHECK: dist.recv {{.*}} {dist.at = array<i64: 2>}
  // CHECK: dist.at = array<i64: 0, 2>
  %got:2 = dist.group {
    dist.send {"x"} %a to %other : tensor<f32>
    scf.if %isRoot {
      %skipped = dist.recv {"x"} from %other : tensor<f32>
    }
    %0 = dist.recv {"x"} from %other {dist.at = array<i64: 2>} : tensor<f32>
    dist.yield %a, %0 : tensor<f32>, tensor<f32>
  } {dist.at = array<i64: 0, 2>} : tensor<f32>, tensor<f32>
  %1 = arith.select %isOdd, %a, %got#0 : tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Branches that come to equal collectives meet there: each brings its own value, all get the result. What stands
// before and after stays the branch's own.
dist.mesh @mesh <["x"=4]>
// CHECK-LABEL: func.func @meeting
func.func @meeting() -> tensor<2xf32> {
  %i = dist.axis_index {"x"} * 1 : index
  %two = arith.constant 2 : index
  // CHECK: %[[A:.*]] = nn.constant
  %a = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %isLow = arith.cmpi ult, %i, %two : index
  // CHECK: %[[NEG:.*]] = nn.neg %[[A]]
  // CHECK: %[[GIVEN:.*]] = dist.select [0, 0, 1, 1] %[[NEG]], %[[A]] : tensor<2xf32>
  // CHECK: %[[SUM:.*]] = dist.all_reduce {"x"} sum %[[GIVEN]] : tensor<2xf32>
  // CHECK: dist.barrier {"x"}{{$}}
  // CHECK: %[[TWICE:.*]] = nn.add %[[SUM]], %[[SUM]]
  // CHECK: dist.select [0, 0, 1, 1] %[[SUM]], %[[TWICE]]
  %0 = scf.if %isLow -> tensor<2xf32> {
    %1 = nn.neg %a : tensor<2xf32>
    %2 = dist.all_reduce {"x"} sum %1 : tensor<2xf32>
    dist.barrier {"x"}
    scf.yield %2 : tensor<2xf32>
  } else {
    %1 = dist.all_reduce {"x"} sum %a : tensor<2xf32>
    dist.barrier {"x"}
    %2 = nn.add %1, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    scf.yield %2 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// Groups of which a branch is whole run in it, and what no other branch has: only {"y"} spans both.
dist.mesh @mesh <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @meeting_of_some
func.func @meeting_of_some() -> tensor<f32> {
  %y = dist.axis_index {"y"} * 1 : index
  %zero = arith.constant 0 : index
  %a = nn.constant dense<3.0> : tensor<f32>
  %isFirst = arith.cmpi eq, %y, %zero : index
  // CHECK: %[[X:.*]] = dist.all_reduce {"x"} sum %{{.*}} {dist.at = array<i64: 0, 2>}
  // CHECK: %[[GIVEN:.*]] = dist.select [0, 1, 0, 1] %[[X]], %{{.*}}
  // CHECK: dist.all_reduce {"y"} max %[[GIVEN]] : tensor<f32>
  %0 = scf.if %isFirst -> tensor<f32> {
    %1 = dist.all_reduce {"x"} sum %a : tensor<f32>
    %2 = dist.all_reduce {"y"} max %1 : tensor<f32>
    scf.yield %2 : tensor<f32>
  } else {
    %2 = dist.all_reduce {"y"} max %a : tensor<f32>
    scf.yield %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}
