// Sends, receives and control flow that depends on the position.
// RUN: shoal-opt %s -split-input-file --interpret="all-ranks" -o /dev/null | FileCheck %s

// In a group sends and receives progress together: a ring does not stall. All ranks sending at once, ungrouped,
// is a deadlock (invalid.mlir).
dist.mesh @mesh <["x"=3]>
func.func @ring() -> tensor<i64> {
  %i = dist.axis_index {"x"} * 1 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %up = arith.addi %i, %one : index
  %next = arith.remui %up, %three : index
  %down = arith.addi %i, %two : index
  %previous = arith.remui %down, %three : index
  %mine = dist.axis_index {"x"} * 10 : tensor<i64>
  %got = dist.group {
    dist.send {"x"} %mine to %next : tensor<i64>
    %0 = dist.recv {"x"} from %previous : tensor<i64>
    dist.yield %0 : tensor<i64>
  } : tensor<i64>
  return %got : tensor<i64>
}
// CHECK: rank 0 result 0: {{.*}} [20]
// CHECK: rank 1 result 0: {{.*}} [0]
// CHECK: rank 2 result 0: {{.*}} [10]

// -----

// Ranks take different branches; messages between two ranks match in order.
dist.mesh @mesh <["x"=2]>
func.func @branches() -> (tensor<i64>, tensor<i64>) {
  %i = dist.axis_index {"x"} * 1 : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = nn.constant dense<5> : tensor<i64>
  %b = nn.constant dense<6> : tensor<i64>
  %first = arith.cmpi eq, %i, %zero : index
  %0:2 = scf.if %first -> (tensor<i64>, tensor<i64>) {
    dist.send {"x"} %a to %one : tensor<i64>
    dist.send {"x"} %b to %one : tensor<i64>
    scf.yield %a, %b : tensor<i64>, tensor<i64>
  } else {
    %1 = dist.recv {"x"} from %zero : tensor<i64>
    %2 = dist.recv {"x"} from %zero : tensor<i64>
    scf.yield %2, %1 : tensor<i64>, tensor<i64>
  }
  return %0#0, %0#1 : tensor<i64>, tensor<i64>
}
// CHECK: rank 0 result 0: {{.*}} [5]
// CHECK: rank 1 result 0: {{.*}} [6]
// CHECK: rank 1 result 1: {{.*}} [5]

// -----

// A loop with a collective in it: each round doubles the sum of two ranks.
dist.mesh @mesh <["x"=2]>
func.func @loop() -> tensor<i64> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %start = dist.axis_index {"x"} * 1 : tensor<i64>
  %sum = scf.for %k = %zero to %four step %one iter_args(%x = %start) -> tensor<i64> {
    %0 = dist.all_reduce {"x"} sum %x : tensor<i64>
    scf.yield %0 : tensor<i64>
  }
  return %sum : tensor<i64>
}
// CHECK: rank 0 result 0: {{.*}} [8]

// -----

// A loop whose next index does not fit 64 bits ends there.
dist.mesh @mesh <["x"=2]>
func.func @last_index() -> tensor<f32> {
  %x = nn.constant dense<1.0> : tensor<f32>
  %low = arith.constant 9223372036854775805 : index
  %high = arith.constant 9223372036854775807 : index
  %step = arith.constant 3 : index
  %0 = scf.for %k = %low to %high step %step iter_args(%a = %x) -> (tensor<f32>) {
    %1 = nn.add %a, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}
// CHECK: rank 0 result 0: {{.*}} [2]
// CHECK: rank 1 result 0: {{.*}} [2]
