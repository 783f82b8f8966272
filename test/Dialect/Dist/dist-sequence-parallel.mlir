// RUN: shoal-opt %s --dist-sequence-parallel | FileCheck %s
// RUN: shoal-opt %s --dist-sequence-parallel=keep-gathered=true | FileCheck %s --check-prefix=KEEP

// The stream is sharded by sequence; the products read it whole and what they add is scattered. Ops between stay in the stream.
// A parameter that has a row for each token is part of it.
dist.mesh @mesh <["data"=2, "tensor"=2]>

// CHECK-LABEL: func.func @mlp
// CHECK-SAME: %[[P:[^:]*]]: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>, dist.why = {tensor = #dist.cause<"the residual stream by sequence" by "--sequence-parallel">}, nn.param = #nn.param<"p"
// CHECK: %[[X:.*]] = nn.add %{{.*}}, %{{.*}} {dist.shardings = [#dist.sharding<@mesh, [{?}, {"tensor"}, {?}]>], dist.why = {tensor = #dist.cause<"the residual stream by sequence" by "--sequence-parallel">}}
// CHECK: %[[Y:.*]] = nn.mul %[[X]], %{{.*}} {dist.shardings = [#dist.sharding<@mesh, [{?}, {"tensor"}, {?}]>], dist.why
// CHECK: %[[G:.*]] = dist.reshard %[[Y]] <@mesh, [{?}, {}, {?}]> {nn.layer = "h.0", reason = "the whole sequence for nn.tensordot"}
// CHECK: %[[H:.*]] = nn.tensordot %[[G]], %{{.*}} axes = 1 {nn.layer = "h.0"}
// CHECK: %[[A:.*]] = nn.relu %[[H]] :
// CHECK: %[[O:.*]] = nn.tensordot %[[A]], %{{.*}} axes = 1 {nn.layer = "h.0"}
// CHECK: %[[S:.*]] = dist.reshard %[[O]] <@mesh, [{?}, {"tensor"}, {?}]> {dist.why = {tensor = #dist.cause<"the residual stream by sequence" by "--sequence-parallel">}, nn.layer = "h.0", reason = "the residual stream behind nn.tensordot"}
// CHECK: nn.add %[[X]], %[[S]] {dist.shardings
func.func @mlp(%x: tensor<4x6x8xf32> {nn.input = "x"}, %p: tensor<6x8xf32> {nn.param = #nn.param<"p", init = zeros>},
               %g: tensor<8xf32> {nn.param = #nn.param<"g", init = ones>},
               %w1: tensor<8x10xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
               %w2: tensor<10x8xf32> {nn.param = #nn.param<"w2", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.add %x, %p : (tensor<4x6x8xf32>, tensor<6x8xf32>) -> tensor<4x6x8xf32>
  %1 = nn.mul %0, %g : (tensor<4x6x8xf32>, tensor<8xf32>) -> tensor<4x6x8xf32>
  %2 = nn.tensordot %1, %w1 axes = 1 {nn.layer = "h.0"} : (tensor<4x6x8xf32>, tensor<8x10xf32>) -> tensor<4x6x10xf32>
  %3 = nn.relu %2 : tensor<4x6x10xf32>
  %4 = nn.tensordot %3, %w2 axes = 1 {nn.layer = "h.0"} : (tensor<4x6x10xf32>, tensor<10x8xf32>) -> tensor<4x6x8xf32>
  %5 = nn.add %0, %4 : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %loss = nn.reduce sum %5 dims = [0, 1, 2] : tensor<4x6x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// Behind the loss, a product that reads the stream of the forward pass gathers it again; or, when it is kept, reads the first.
// CHECK-LABEL: func.func @again
// CHECK: %[[FIRST:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}]>
// CHECK-NOT: refetch
// CHECK: nn.reduce sum
// CHECK: %[[AGAIN:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}]> {dist.refetch
// CHECK: nn.tensordot %[[AGAIN]], %{{.*}} axes = 2 {transpose_a}
// KEEP-LABEL: func.func @again
// KEEP: %[[FIRST:.*]] = dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}]>
// KEEP-NOT: refetch
// KEEP: nn.tensordot %[[FIRST]], %{{.*}} axes = 2 {transpose_a}
func.func @again(%x: tensor<4x6x8xf32> {nn.input = "x"},
                 %w1: tensor<8x10xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f32> {nn.loss}, tensor<8x10xf32> {nn.grad = "w1"}) {
  %0 = nn.relu %x : tensor<4x6x8xf32>
  %1 = nn.tensordot %0, %w1 axes = 1 : (tensor<4x6x8xf32>, tensor<8x10xf32>) -> tensor<4x6x10xf32>
  %loss = nn.reduce sum %1 dims = [0, 1, 2] : tensor<4x6x10xf32> -> tensor<f32>
  %2 = nn.constant dense<1.0> : tensor<4x6x10xf32>
  %3 = nn.mul %2, %1 : (tensor<4x6x10xf32>, tensor<4x6x10xf32>) -> tensor<4x6x10xf32>
  %4 = nn.tensordot %0, %3 axes = 2 {transpose_a} : (tensor<4x6x8xf32>, tensor<4x6x10xf32>) -> tensor<8x10xf32>
  return %loss, %4 : tensor<f32>, tensor<8x10xf32>
}

// A parameter is one also where it is cast or reshaped before the product.
// CHECK-LABEL: func.func @cast
// CHECK: dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}]> {reason = "the whole sequence for nn.tensordot"}
func.func @cast(%x: tensor<4x6x8xf32> {nn.input = "x"},
                %w1: tensor<8x10xf64> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.relu %x : tensor<4x6x8xf32>
  %1 = nn.cast %w1 : tensor<8x10xf64> -> tensor<8x10xf32>
  %2 = nn.tensordot %0, %1 axes = 1 : (tensor<4x6x8xf32>, tensor<8x10xf32>) -> tensor<4x6x10xf32>
  %loss = nn.reduce sum %2 dims = [0, 1, 2] : tensor<4x6x10xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// A weight that a hand shards along the hidden size, which norms need whole, does not end the stream: the sequence has the axis.
// CHECK-LABEL: func.func @hidden
// CHECK: dist.reshard %{{.*}} <@mesh, [{?}, {}, {?}]> {reason = "the whole sequence for nn.tensordot"}
// CHECK: dist.reshard %{{.*}} <@mesh, [{?}, {"tensor"}, {?}]> {{.*}} reason = "the residual stream behind nn.tensordot"
func.func @hidden(%x: tensor<4x6x8xf32> {nn.input = "x"}, %g: tensor<8xf32> {nn.param = #nn.param<"g", init = ones>},
                  %w1: tensor<8x10xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                  %w2: tensor<10x8xf32> {nn.param = #nn.param<"w2", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
                  %w3: tensor<8x8xf32> {nn.param = #nn.param<"w3", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %n, %r = nn.rms_norm %x, %g eps = 1.0e-5 : tensor<4x6x8xf32>, tensor<8xf32>
  %0 = nn.tensordot %n, %w1 axes = 1 : (tensor<4x6x8xf32>, tensor<8x10xf32>) -> tensor<4x6x10xf32>
  %1 = nn.tensordot %0, %w2 axes = 1 : (tensor<4x6x10xf32>, tensor<10x8xf32>) -> tensor<4x6x8xf32>
  %2 = nn.add %n, %1 : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %3 = nn.tensordot %2, %w3 axes = 1 : (tensor<4x6x8xf32>, tensor<8x8xf32>) -> tensor<4x6x8xf32>
  %loss = nn.reduce sum %3 dims = [0, 1, 2] : tensor<4x6x8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// No norm stands between a product and the next one: what the first scatters is gathered whole for the second, in both passes.
// CHECK-LABEL: func.func @no_norm
// CHECK: %[[E:.*]] = nn.embedding
// CHECK: %[[ES:.*]] = dist.reshard %[[E]] <@mesh, [{?}, {"tensor"}, {?}]> {{.*}}"the residual stream behind nn.embedding"
// CHECK: %[[EW:.*]] = dist.reshard %[[ES]] <@mesh, [{?}, {}, {?}]> {reason = "the whole sequence for nn.tensordot"}
// CHECK: nn.tensordot %[[EW]], %{{.*}} axes = 1 :
// CHECK: nn.reduce sum
// CHECK: %[[D:.*]] = nn.tensordot %{{.*}}, %{{.*}} axes = 1 {transpose_b}
// CHECK: %[[DS:.*]] = dist.reshard %[[D]] <@mesh, [{?}, {"tensor"}, {?}]> {{.*}}"the residual stream behind nn.tensordot"
// CHECK: %[[DW:.*]] = dist.reshard %[[DS]] <@mesh, [{?}, {}, {?}]> {reason = "the whole sequence for nn.tensordot"}
// CHECK: nn.tensordot %[[DW]], %{{.*}} axes = 2 {transpose_a}
func.func @no_norm(%ids: tensor<4x6xi64> {nn.input = "ids"},
                   %e: tensor<16x8xf32> {nn.param = #nn.param<"e", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
                   %w: tensor<8x16xf32> {nn.param = #nn.param<"w", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>})
    -> (tensor<f32> {nn.loss}, tensor<8x16xf32> {nn.grad = "w"}) {
  %0 = nn.embedding %e, %ids : (tensor<16x8xf32>, tensor<4x6xi64>) -> tensor<4x6x8xf32>
  %1 = nn.tensordot %0, %w axes = 1 : (tensor<4x6x8xf32>, tensor<8x16xf32>) -> tensor<4x6x16xf32>
  %loss = nn.reduce sum %1 dims = [0, 1, 2] : tensor<4x6x16xf32> -> tensor<f32>
  %2 = nn.tanh %1 : tensor<4x6x16xf32>
  %3 = nn.tensordot %2, %w axes = 1 {transpose_b} : (tensor<4x6x16xf32>, tensor<8x16xf32>) -> tensor<4x6x8xf32>
  %4 = nn.tensordot %3, %2 axes = 2 {transpose_a} : (tensor<4x6x8xf32>, tensor<4x6x16xf32>) -> tensor<8x16xf32>
  return %loss, %4 : tensor<f32>, tensor<8x16xf32>
}
