// RUN: shoal-opt %s --dist-number | FileCheck %s

// Ops of nn and dist with results are numbered in program order, through the whole module; others are not.

dist.mesh @mesh <["data"=2]>

// CHECK-LABEL: func.func @f
func.func @f(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  // CHECK: nn.relu {{.*}} {dist.id = 0 : i64}
  %0 = nn.relu %x : tensor<8x4xf32>
  // CHECK: arith.constant 1 : i64
  %c = arith.constant 1 : i64
  // CHECK: dist.accumulate{{.*}}dist.id = 1 : i64
  %1 = dist.accumulate(%0) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    // CHECK: nn.reduce {{.*}} {dist.id = 2 : i64}
    %2 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    // CHECK: dist.yield %{{[0-9]+}} :
    dist.yield %2 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @g
func.func @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  // A number from before is replaced.
  // CHECK: nn.relu {{.*}} {dist.id = 3 : i64}
  %0 = nn.relu %x {dist.id = 77 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Results of one op have numbers of their own: the op's, and those behind it.
// CHECK-LABEL: func.func @h
func.func @h(%x: tensor<4x8xf32>, %p: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: nn.layer_norm {{.*}} {dist.id = 4 : i64}
  %y, %mean, %rstd = nn.layer_norm %x, %p, %p eps = 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>
  // CHECK: nn.relu {{.*}} {dist.id = 7 : i64}
  %0 = nn.relu %y : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
