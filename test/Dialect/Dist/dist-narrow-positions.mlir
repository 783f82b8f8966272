// RUN: shoal-opt %s -split-input-file --dist-narrow-positions | FileCheck %s -enable-var-scope
// What positions have is what it was; some have nothing where they made it of nothing before, and rank 1 no new value
// of w0, which was the old one.
// RUN: shoal-opt %s -split-input-file --interpret="all-ranks" -o /dev/null | grep -v "nan\|rank 1 .*new w0" > %t.written
// RUN: shoal-opt %s -split-input-file --dist-narrow-positions --interpret="all-ranks" -o /dev/null | grep -v "of other ranks" > %t.narrow
// RUN: diff %t.written %t.narrow

// Two stages: what computes runs where its operands are and its result is needed. The square root is needed at both,
// the constant is everywhere, and what nobody needs is gone.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: func.func @stages
func.func @stages(%x: tensor<2x2xf32>, %w0: tensor<2x2xf32>, %w1: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: %[[TWO:.*]] = nn.constant dense<2.000000e+00> : tensor<f32>
  %two = nn.constant dense<2.0> : tensor<f32>
  // CHECK: %[[ROOT:.*]] = nn.sqrt %[[TWO]] : tensor<f32>
  %root = nn.sqrt %two : tensor<f32>
  // CHECK: %[[H:.*]] = nn.matmul %arg0, %arg1 {dist.at = array<i64: 0>}
  %h = nn.matmul %x, %w0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // CHECK: %[[S:.*]] = nn.mul %[[H]], %[[ROOT]] {dist.at = array<i64: 0>}
  %s = nn.mul %h, %root : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  // CHECK-NOT: nn.neg
  %unread = nn.neg %h : tensor<2x2xf32>
  // CHECK: dist.send {"pipe"} %[[S]] to %{{.*}} {dist.at = array<i64: 0>}
  dist.send {"pipe"} %s to %one {dist.at = array<i64: 0>} : tensor<2x2xf32>
  // CHECK: %[[R:.*]] = dist.recv {"pipe"} from %{{.*}} {dist.at = array<i64: 1>}
  %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<2x2xf32>
  // CHECK: %[[Y:.*]] = nn.matmul %[[R]], %arg2 {dist.at = array<i64: 1>}
  %y = nn.matmul %r, %w1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // CHECK: %[[Z:.*]] = nn.mul %[[Y]], %[[ROOT]] {dist.at = array<i64: 1>}
  %z = nn.mul %y, %root : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  // CHECK: return %[[Z]]
  return %z : tensor<2x2xf32>
}

// -----

// A select needs each operand only where it takes that one; where only one is left, it is that value. So a position
// that neither computes a value nor has it received does nothing.
dist.mesh @mesh <["pipe"=3]>
// CHECK-LABEL: func.func @selects
func.func @selects(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: %[[P:.*]] = nn.exp %arg0 {dist.at = array<i64: 0>}
  %p = nn.exp %a : tensor<2xf32>
  // CHECK: %[[Q:.*]] = nn.exp %arg1 {dist.at = array<i64: 1, 2>}
  %q = nn.exp %b : tensor<2xf32>
  // CHECK: %[[BOTH:.*]] = dist.select [0, 1, 1] %[[P]], %[[Q]] : tensor<2xf32>
  %both = dist.select [0, 1, 1] %p, %q : tensor<2xf32>
  // CHECK: %[[M:.*]] = nn.tanh %arg0 {dist.at = array<i64: 0>}
  %m = nn.tanh %a : tensor<2xf32>
  // CHECK-NOT: nn.tanh
  %n = nn.tanh %b : tensor<2xf32>
  // CHECK-NOT: dist.select
  %first = dist.select [0, 1, 1] %m, %n : tensor<2xf32>
  // CHECK: dist.send {"pipe"} %[[M]]
  dist.send {"pipe"} %first to %one {dist.at = array<i64: 0>} : tensor<2xf32>
  %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<2xf32>
  // CHECK: %[[S:.*]] = nn.neg %{{.*}} {dist.at = array<i64: 1>}
  %s = nn.neg %r : tensor<2xf32>
  // CHECK: return %[[BOTH]], %[[S]]
  return %both, %s : tensor<2xf32>, tensor<2xf32>
}

// -----

// Each stage updates its own parameter. Where a position has the old value as the new one, and does not read it
// otherwise, there is nothing to do. Of %v each position needs the new value, also where that is the old one.
dist.mesh @mesh <["pipe"=2]>
// CHECK-LABEL: func.func @updates
func.func @updates(%w0: tensor<2xf32> {nn.param = #nn.param<"w0", init = ones>}, %v: tensor<2xf32> {nn.param = #nn.param<"v", init = ones>})
    -> (tensor<2xf32> {nn.updates = "w0"}, tensor<2xf32> {nn.updates = "v"}, tensor<2xf32> {nn.output = "y"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  dist.send {"pipe"} %v to %one {dist.at = array<i64: 0>} : tensor<2xf32>
  %r = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<2xf32>
  // CHECK: %[[NEW:.*]] = nn.neg %arg0 {dist.at = array<i64: 0>}
  %new = nn.neg %w0 : tensor<2xf32>
  %w = dist.select [0, 1] %new, %w0 : tensor<2xf32>
  // CHECK: %[[NEWV:.*]] = nn.add %arg1, %{{.*}} {dist.at = array<i64: 1>}
  %newv = nn.add %v, %r : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %u = dist.select [0, 1] %v, %newv : tensor<2xf32>
  // CHECK: %[[V:.*]] = dist.select [1, 0] %[[NEWV]], %arg1 : tensor<2xf32>
  // CHECK: return %[[NEW]], %[[V]], %arg1
  return %w, %u, %v : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// A group of messages runs where it says, and so do the ends in it: what one of them sends is needed at the sender.
dist.mesh @mesh <["pipe"=3]>
// CHECK-LABEL: func.func @groups
func.func @groups(%a: tensor<2xf32>) -> tensor<2xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // CHECK: %[[A:.*]] = nn.exp %arg0 {dist.at = array<i64: 0>}
  %0 = nn.exp %a : tensor<2xf32>
  // CHECK: %[[B:.*]] = nn.tanh %arg0 {dist.at = array<i64: 1>}
  %1 = nn.tanh %a : tensor<2xf32>
  %2:2 = dist.group {
    dist.send {"pipe"} %0 to %one {dist.at = array<i64: 0>} : tensor<2xf32>
    dist.send {"pipe"} %1 to %zero {dist.at = array<i64: 1>} : tensor<2xf32>
    %3 = dist.recv {"pipe"} from %zero {dist.at = array<i64: 1>} : tensor<2xf32>
    %4 = dist.recv {"pipe"} from %one {dist.at = array<i64: 0>} : tensor<2xf32>
    dist.yield %3, %4 : tensor<2xf32>, tensor<2xf32>
  } {dist.at = array<i64: 0, 1>} : tensor<2xf32>, tensor<2xf32>
  // CHECK: %[[FIVE:.*]] = nn.neg %{{.*}}#0 {dist.at = array<i64: 1>}
  %5 = nn.neg %2#0 : tensor<2xf32>
  // CHECK: %[[SIX:.*]] = nn.neg %{{.*}}#1 {dist.at = array<i64: 0>}
  %6 = nn.neg %2#1 : tensor<2xf32>
  // CHECK: dist.select [0, 1, 2] %[[SIX]], %[[FIVE]], %arg0
  %7 = dist.select [1, 0, 2] %5, %6, %a : tensor<2xf32>
  return %7 : tensor<2xf32>
}

// -----

// What says itself where it runs does not run elsewhere, a collective of one stage has its operand there alone, and a
// value that two stages need runs at both.
dist.mesh @mesh <["pipe"=2, "data"=2]>
// CHECK-LABEL: func.func @given
func.func @given(%a: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: %[[E:.*]] = nn.exp %arg0 : tensor<2xf32>
  %0 = nn.exp %a : tensor<2xf32>
  // CHECK: %[[X:.*]] = nn.sqrt %[[E]] {dist.at = array<i64: 0, 1>}
  %1 = nn.sqrt %0 : tensor<2xf32>
  // CHECK: %[[SUM:.*]] = dist.all_reduce {"data"} sum %[[X]] {dist.at = array<i64: 0, 1>}
  %2 = dist.all_reduce {"data"} sum %1 {dist.at = array<i64: 0, 1>} : tensor<2xf32>
  // CHECK: %[[T:.*]] = nn.tanh %[[E]] {dist.at = array<i64: 2, 3>}
  %3 = nn.tanh %0 {dist.at = array<i64: 2, 3>} : tensor<2xf32>
  // CHECK: dist.select [0, 0, 1, 1] %[[SUM]], %[[T]]
  %4 = dist.select [0, 0, 1, 1] %2, %3 : tensor<2xf32>
  return %4 : tensor<2xf32>
}

// -----

// Where all communicate alike all compute alike, whatever they take of it.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @alike
func.func @alike(%a: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK: nn.exp %arg0 : tensor<2xf32>
  %0 = nn.exp %a : tensor<2xf32>
  // CHECK: nn.neg %{{.*}} : tensor<2xf32>
  %1 = nn.neg %0 : tensor<2xf32>
  %2 = dist.all_reduce {"x"} sum %1 : tensor<2xf32>
  // CHECK: dist.select [0, 1] %{{.*}}, %{{.*}} : tensor<2xf32>
  %3 = dist.select [0, 1] %0, %2 : tensor<2xf32>
  return %3 : tensor<2xf32>
}
