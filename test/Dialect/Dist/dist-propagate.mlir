// RUN: shoal-opt %s -split-input-file --dist-propagate --dist-verify-global 2>/dev/null | FileCheck %s

// Every case also passes the contract of L1. `dist.shardings` of an op is checked as [dims], unreduced.

dist.mesh @mesh <["x"=2, "y"=2]>

// A contraction over a sharded dimension is partial, and is reduced for the function's result.
// CHECK-LABEL: func.func @contraction
// CHECK-SAME: %{{[^:]*}}: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>
// CHECK-SAME: -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
func.func @contraction(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                       %b: tensor<4x2xf32>) -> tensor<8x2xf32> {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// The chain of a tensor-parallel MLP: columns, then rows; the partial result is reduced at the end.
// CHECK-LABEL: func.func @columns_then_rows
func.func @columns_then_rows(
    %x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
    %w1: tensor<4x16xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>},
    %w2: tensor<16x4xf32>) -> tensor<8x4xf32> {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x"}, {"y"}]>]
  %0 = nn.matmul %x, %w1 : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  // CHECK: nn.relu {{.*}}[#dist.sharding<@mesh, [{"x"}, {"y"}]>]
  %1 = nn.relu %0 : tensor<8x16xf32>
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x"}, {}], unreduced=sum{"y"}>]
  %2 = nn.matmul %1, %w2 : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  // CHECK: return
  return %2 : tensor<8x4xf32>
}

// From the result to the operands.
// CHECK-LABEL: func.func @backward
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>
// CHECK-SAME: %{{[^:]*}}: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>
func.func @backward(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>)
    -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {"y"}]>}) {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x"}, {"y"}]>]
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// Several axes on one dimension; a closed dimension keeps what it has.
// CHECK-LABEL: func.func @closed
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}, {}]>
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>
func.func @closed(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}, {}]>},
                  %b: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  // CHECK: nn.add {{.*}}[#dist.sharding<@mesh, [{"x", "y"}, {}]>]
  %0 = nn.add %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// An open dimension takes more axes at its minor end.
// CHECK-LABEL: func.func @open
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}, {}]>
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}, {}]>
func.func @open(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}, {}]>},
                %b: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", ?}, {}]>}) -> tensor<8x4xf32> {
  %0 = nn.add %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// Broadcast dimensions stay whole.
// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: %{{[^:]*}}: tensor<1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>
// CHECK-SAME: %{{[^:]*}}: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}]>
func.func @broadcast(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {"y"}]>},
                     %b: tensor<1x4xf32>, %c: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = nn.add %a, %b : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %1 = nn.mul %0, %c : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A reshape that merges: the major dimension may be sharded when the shards divide it, the minor
// one only when the major one is whole elements.
// CHECK-LABEL: func.func @merge
func.func @merge(%a: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                 %b: tensor<5x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                 %c: tensor<2x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {"y"}]>},
                 %d: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<24xf32>, tensor<20xf32>, tensor<8xf32>, tensor<24xf32>) {
  // CHECK: nn.reshape {{.*}}[#dist.sharding<@mesh, [{"x"}]>]
  %0 = nn.reshape %a : tensor<6x4xf32> -> tensor<24xf32>
  // Shards of 3 rows are no shards of 10 elements.
  // CHECK: nn.reshape {{.*}}[#dist.sharding<@mesh, [{}]>]
  %1 = nn.reshape %b : tensor<5x4xf32> -> tensor<20xf32>
  // CHECK: nn.reshape {{.*}}[#dist.sharding<@mesh, [{"x", "y"}]>]
  %2 = nn.reshape %c : tensor<2x4xf32> -> tensor<8xf32>
  // CHECK: nn.reshape {{.*}}[#dist.sharding<@mesh, [{}]>]
  %3 = nn.reshape %d : tensor<6x4xf32> -> tensor<24xf32>
  return %0, %1, %2, %3 : tensor<24xf32>, tensor<20xf32>, tensor<8xf32>, tensor<24xf32>
}

// A maximum over a sharded dimension is a partial maximum.
// CHECK-LABEL: func.func @maximum
func.func @maximum(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8xf32> {
  // CHECK: nn.reduce max {{.*}}[#dist.sharding<@mesh, [{}], unreduced=max{"x"}>]
  %0 = nn.reduce max %a dims = [1] : tensor<8x4xf32> -> tensor<8xf32>
  // Moving elements keeps it so; adding something does not.
  // CHECK: nn.reshape {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=max{"x"}>]
  %1 = nn.reshape %0 : tensor<8xf32> -> tensor<2x4xf32>
  // CHECK: nn.exp {{.*}}[#dist.sharding<@mesh, [{}, {}]>]
  %2 = nn.exp %1 : tensor<2x4xf32>
  // CHECK: nn.reshape {{.*}}[#dist.sharding<@mesh, [{}]>]
  %3 = nn.reshape %2 : tensor<2x4xf32> -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// Partial values pass through linear ops, if exactly the operands of a linear group are partial.
// CHECK-LABEL: func.func @linear
func.func @linear(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                  %b: tensor<4x2xf32>, %bias: tensor<2xf32>, %s: tensor<f32>) -> (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>) {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.mul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %1 = nn.mul %0, %s : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x2xf32>
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %2 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.add {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %3 = nn.add %1, %2 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  // A bias is added once, after the reduction.
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %4 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.add {{.*}}[#dist.sharding<@mesh, [{}, {}]>]
  %5 = nn.add %4, %bias : (tensor<8x2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
  // A product of two partial values is no partial product.
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %6 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.mul {{.*}}[#dist.sharding<@mesh, [{}, {}]>]
  %7 = nn.mul %6, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %3, %5, %7 : tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>
}

// Where one user needs the value reduced, all of them read it reduced: it is reduced once.
// CHECK-LABEL: func.func @reduced_once
func.func @reduced_once(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                        %b: tensor<4x2xf32>, %s: tensor<f32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.relu {{.*}}[#dist.sharding<@mesh, [{}, {}]>]
  %1 = nn.relu %0 : tensor<8x2xf32>
  // CHECK: nn.mul {{.*}}[#dist.sharding<@mesh, [{}, {}]>]
  %2 = nn.mul %0, %s : (tensor<8x2xf32>, tensor<f32>) -> tensor<8x2xf32>
  return %1, %2 : tensor<8x2xf32>, tensor<8x2xf32>
}

// An annotation by hand says exactly what is partial: here the value is scattered where it is made.
// CHECK-LABEL: func.func @by_hand
func.func @by_hand(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                   %b: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x"}, {}]>]
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  // CHECK: nn.mul {{.*}}[#dist.sharding<@mesh, [{"x"}, {}]>]
  %1 = nn.mul %0, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// A reshard says where the layout changes: nothing passes the dimensions that it closes.
// CHECK-LABEL: func.func @reshard
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"y"}]>
// CHECK-SAME: -> (tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
func.func @reshard(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{?}, {"y", ?}]>}) -> tensor<8x4xf32> {
  // CHECK: nn.relu {{.*}}[#dist.sharding<@mesh, [{}, {"y"}]>]
  %0 = nn.relu %a : tensor<8x4xf32>
  // CHECK: dist.reshard {{.*}} <@mesh, [{"x"}, {}]>
  %1 = dist.reshard %0 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  // CHECK: nn.relu {{.*}}[#dist.sharding<@mesh, [{"x"}, {}]>]
  %2 = nn.relu %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// A result that replaces an argument lies as the argument does.
// CHECK-LABEL: func.func @updates
// CHECK-SAME: -> (tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>, nn.updates = "w"})
func.func @updates(%w: tensor<8x4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                   %g: tensor<8x4xf32>, %lr: tensor<f32>) -> (tensor<8x4xf32> {nn.updates = "w"}) {
  %0 = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<8x4xf32>, tensor<f32>
  return %0 : tensor<8x4xf32>
}

// The micro-batch region: rows stay sharded inside, partial sums pass out and are reduced once.
// CHECK-LABEL: func.func @accumulate
func.func @accumulate(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                      %w: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) -> tensor<2xf32> {
  // CHECK: dist.accumulate
  // CHECK-SAME: dist.arg_shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]
  // CHECK-SAME: dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x"}, {}]>]
    %1 = nn.matmul %m, %w : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    // CHECK: nn.reduce {{.*}}[#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]
    %2 = nn.reduce sum %1 dims = [0] : tensor<4x2xf32> -> tensor<2xf32>
    dist.yield %2 : tensor<2xf32>
  } : (tensor<8x4xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

dist.mesh @mesh <["x"=2, "y"=3, "one"=1], device_ids=[5, 4, 3, 2, 1, 0]>

// Sizes that do not divide, an axis of size 1 and permuted devices are as any others.
// CHECK-LABEL: func.func @any_size
// CHECK-SAME: %{{[^:]*}}: tensor<7x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "one"}, {"y"}]>
// CHECK-SAME: %{{[^:]*}}: tensor<5x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {}]>
func.func @any_size(%a: tensor<7x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "one"}, {"y"}]>},
                    %b: tensor<5x4xf32>) -> tensor<7x4xf32> {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x", "one"}, {}], unreduced=sum{"y"}>]
  %0 = nn.matmul %a, %b : (tensor<7x5xf32>, tensor<5x4xf32>) -> tensor<7x4xf32>
  return %0 : tensor<7x4xf32>
}

// A partial value over an axis of size 1 is as any other.
// CHECK-LABEL: func.func @one
func.func @one(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"one"}]>}, %b: tensor<4x2xf32>) -> tensor<8x2xf32> {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{}, {}], unreduced=sum{"one"}>]
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// Priorities: p0 spreads to a fixpoint before p1 is looked at, so the product's rows follow %a and
// its columns do not get the same axis from %b.
// CHECK-LABEL: func.func @priorities
func.func @priorities(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}p1, {}]>},
                      %b: tensor<4x800xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}p2]>}) -> tensor<8x800xf32> {
  // CHECK: nn.matmul {{.*}}[#dist.sharding<@mesh, [{"x"}, {}]>]
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x800xf32>) -> tensor<8x800xf32>
  return %0 : tensor<8x800xf32>
}

// -----

// What a reshard leaves open passes it, in both directions; partial values end there.
dist.mesh @mesh <["x"=2, "y"=2]>
// CHECK-LABEL: func.func @open_reshard
func.func @open_reshard(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {"y"}]>},
                        %b: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {}]>}) -> tensor<8x6xf32> {
  // CHECK: nn.matmul {{.*}}[{"x"}, {}], unreduced=sum{"y"}
  %0 = nn.matmul %a, %b : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  // CHECK: dist.reshard {{.*}} <@mesh, [{"x"}, {"y"}]>
  %1 = dist.reshard %0 <@mesh, [{?}, {"y"}]> : tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// A new value is made as the argument lies that it updates, wherever its gradient lies.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: func.func @update
func.func @update(%w: tensor<8xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                  %g: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {nn.updates = "w"}) {
  %lr = nn.constant dense<0.1> : tensor<f32>
  // CHECK: nn.sgd_update {{.*}}dist.shardings = [#dist.sharding<@mesh, [{}]>]
  %0 = nn.sgd_update %w, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<8xf32>, tensor<f32>
  return %0 : tensor<8xf32>
}

// -----

// Without a mesh there is one device and nothing to say.
// CHECK-LABEL: func.func @one_device
// CHECK-NOT: dist
func.func @one_device(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.relu %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
