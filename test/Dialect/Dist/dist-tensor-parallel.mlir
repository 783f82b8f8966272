// RUN: shoal-opt %s -split-input-file -verify-diagnostics --dist-tensor-parallel | FileCheck %s

// The hidden dimension of an MLP: columns of w1, its bias, rows of w2; the second bias is added once and whole.
dist.mesh @mesh <["data"=2, "tensor"=4]>

// CHECK-LABEL: func.func @mlp
// CHECK-SAME: tensor<10x6xf32> {nn.input = "x"}
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: [{"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"b1"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w2"
// CHECK-SAME: tensor<4xf32> {nn.param = #nn.param<"b2"
func.func @mlp(%x: tensor<10x6xf32> {nn.input = "x"}, %y: tensor<10x4xf32> {nn.input = "y"},
               %w1: tensor<6x11xf32> {nn.param = #nn.param<"w1", init = zeros>}, %b1: tensor<11xf32> {nn.param = #nn.param<"b1", init = zeros>},
               %w2: tensor<11x4xf32> {nn.param = #nn.param<"w2", init = zeros>}, %b2: tensor<4xf32> {nn.param = #nn.param<"b2", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x11xf32>) -> tensor<10x11xf32>
  %1 = nn.add %0, %b1 : (tensor<10x11xf32>, tensor<11xf32>) -> tensor<10x11xf32>
  %2 = nn.gelu tanh %1 : tensor<10x11xf32>
  %3 = nn.matmul %2, %w2 : (tensor<10x11xf32>, tensor<11x4xf32>) -> tensor<10x4xf32>
  %4 = nn.add %3, %b2 : (tensor<10x4xf32>, tensor<4xf32>) -> tensor<10x4xf32>
  %loss = nn.mse_loss sum %4, %y : (tensor<10x4xf32>, tensor<10x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// In a chain of products every other dimension: one product cannot shard rows and columns over one axis.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w2"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w3"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w4"
func.func @chain(%x: tensor<10x6xf32> {nn.input = "x"},
                 %w1: tensor<6x8xf32> {nn.param = #nn.param<"w1", init = zeros>}, %w2: tensor<8x7xf32> {nn.param = #nn.param<"w2", init = zeros>},
                 %w3: tensor<7x9xf32> {nn.param = #nn.param<"w3", init = zeros>}, %w4: tensor<9x3xf32> {nn.param = #nn.param<"w4", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  %1 = nn.matmul %0, %w2 : (tensor<10x8xf32>, tensor<8x7xf32>) -> tensor<10x7xf32>
  %2 = nn.matmul %1, %w3 : (tensor<10x7xf32>, tensor<7x9xf32>) -> tensor<10x9xf32>
  %3 = nn.matmul %2, %w4 : (tensor<10x9xf32>, tensor<9x3xf32>) -> tensor<10x3xf32>
  %loss = nn.reduce sum %3 dims = [0, 1] : tensor<10x3xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// The classes of logits, whose loss is taken apart.
// CHECK-LABEL: func.func @vocabulary
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w2"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"head"
func.func @vocabulary(%x: tensor<10x6xf32> {nn.input = "x"}, %y: tensor<10xi64> {nn.input = "y"},
                      %w1: tensor<6x8xf32> {nn.param = #nn.param<"w1", init = zeros>}, %w2: tensor<8x7xf32> {nn.param = #nn.param<"w2", init = zeros>},
                      %w3: tensor<7x13xf32> {nn.param = #nn.param<"head", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  %1 = nn.relu %0 : tensor<10x8xf32>
  %2 = nn.matmul %1, %w2 : (tensor<10x8xf32>, tensor<8x7xf32>) -> tensor<10x7xf32>
  %3 = nn.matmul %2, %w3 : (tensor<10x7xf32>, tensor<7x13xf32>) -> tensor<10x13xf32>
  %loss, %lse = nn.cross_entropy sum %3, %y : (tensor<10x13xf32>, tensor<10xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}

// What lies between must pass the dimension through: a softmax over it would have to be taken apart.
// CHECK-LABEL: func.func @between
// CHECK-SAME: tensor<6x8xf32> {nn.param = #nn.param<"w1"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w2"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w3"
func.func @between(%x: tensor<10x6xf32> {nn.input = "x"},
                   %w1: tensor<6x8xf32> {nn.param = #nn.param<"w1", init = zeros>}, %w2: tensor<8x7xf32> {nn.param = #nn.param<"w2", init = zeros>},
                   %w3: tensor<7x9xf32> {nn.param = #nn.param<"w3", init = zeros>}) -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  %1 = nn.softmax %0 dim = 1 : tensor<10x8xf32>
  %2 = nn.matmul %1, %w2 : (tensor<10x8xf32>, tensor<8x7xf32>) -> tensor<10x7xf32>
  %3 = nn.relu %2 : tensor<10x7xf32>
  %4 = nn.matmul %3, %w3 : (tensor<10x7xf32>, tensor<7x9xf32>) -> tensor<10x9xf32>
  %loss = nn.reduce sum %4 dims = [0, 1] : tensor<10x9xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// For inference logits stay where they are made.
// CHECK-LABEL: func.func @outputs
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w"
func.func @outputs(%x: tensor<10x6xf32> {nn.input = "x"}, %w: tensor<6x8xf32> {nn.param = #nn.param<"w", init = zeros>})
    -> (tensor<10x8xf32> {nn.output = "logits"}) {
  %0 = nn.matmul %x, %w : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  return %0 : tensor<10x8xf32>
}

// -----

// The hand wins: what it shards is completed, what it closes is left alone with all that belongs to it, and said.
dist.mesh @mesh <["tensor"=2]>

// CHECK-LABEL: func.func @hand
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: tensor<8x7xf32> {nn.param = #nn.param<"w2"
// CHECK-SAME: [{}, {}]>, {{[^%]*}}nn.param = #nn.param<"w3"
func.func @hand(%x: tensor<10x6xf32> {nn.input = "x"},
                %w1: tensor<6x8xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
                %w2: tensor<8x7xf32> {nn.param = #nn.param<"w2", init = zeros>},
                // expected-remark @+1 {{the annotation of "w3" keeps dimension 0 from being sharded over "tensor", so tensor parallelism leaves alone what belongs to it: #dist.sharding<@mesh, [{}, {}]>}}
                %w3: tensor<7x9xf32> {nn.param = #nn.param<"w3", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  // expected-note @+1 {{it would be sharded for this op}}
  %1 = nn.matmul %0, %w2 : (tensor<10x8xf32>, tensor<8x7xf32>) -> tensor<10x7xf32>
  %2 = nn.matmul %1, %w3 : (tensor<10x7xf32>, tensor<7x9xf32>) -> tensor<10x9xf32>
  %loss = nn.reduce sum %2 dims = [0, 1] : tensor<10x9xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// What goes on from the hand has the hand for its cause, not the flag.
// CHECK-LABEL: func.func @completed
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: [{"tensor"}]>, dist.why = {tensor = #dist.cause<"the annotation of \22w1\22 at {{[^>]*}}">}, {{[^%]*}}nn.param = #nn.param<"b1"
// CHECK-SAME: [{"tensor"}, {}]>, dist.why = {tensor = #dist.cause<"the annotation of \22w1\22 at {{[^>]*}}">}, {{[^%]*}}nn.param = #nn.param<"w2"
func.func @completed(%x: tensor<10x6xf32> {nn.input = "x"},
                     %w1: tensor<6x8xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                     %b1: tensor<8xf32> {nn.param = #nn.param<"b1", init = zeros>}, %w2: tensor<8x7xf32> {nn.param = #nn.param<"w2", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  %1 = nn.add %0, %b1 : (tensor<10x8xf32>, tensor<8xf32>) -> tensor<10x8xf32>
  %2 = nn.matmul %1, %w2 : (tensor<10x8xf32>, tensor<8x7xf32>) -> tensor<10x7xf32>
  %loss = nn.reduce sum %2 dims = [0, 1] : tensor<10x7xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// Half a pair by hand: the other half is closed by hand, too, and both places are said.
// CHECK-LABEL: func.func @half
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: [{}, {}]>, {{[^%]*}}nn.param = #nn.param<"w2"
func.func @half(%x: tensor<10x6xf32> {nn.input = "x"},
                // expected-note @+1 {{"w1" is annotated here}}
                %w1: tensor<6x8xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}]>},
                // expected-remark @+1 {{the sharding of "w2" keeps dimension 0 from "tensor", over which that of "w1" shards the same dimension; both are kept, and values between them move: #dist.sharding<@mesh, [{}, {}]>}}
                %w2: tensor<8x7xf32> {nn.param = #nn.param<"w2", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<f32> {nn.loss}) {
  %0 = nn.matmul %x, %w1 : (tensor<10x6xf32>, tensor<6x8xf32>) -> tensor<10x8xf32>
  %1 = nn.matmul %0, %w2 : (tensor<10x8xf32>, tensor<8x7xf32>) -> tensor<10x7xf32>
  %loss = nn.reduce sum %1 dims = [0, 1] : tensor<10x7xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

dist.mesh @mesh <["tensor"=2]>

// Two dimensions of one parameter are sharded elsewhere by hand, over one axis: the parameter takes it once, and that is said.
// CHECK-LABEL: func.func @meet
// CHECK-SAME: dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w"
func.func @meet(%x: tensor<4x2xf32> {nn.input = "x"},
                %s: tensor<2xf32> {nn.param = #nn.param<"s", init = ones>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>},
                // expected-remark @+1 {{the sharding of "w" keeps dimension 1 from "tensor", over which that of "b" shards the same dimension; both are kept, and values between them move: #dist.sharding<@mesh, [{"tensor"}, {}]>}}
                %w: tensor<2x2xf32> {nn.param = #nn.param<"w", init = zeros>},
                // expected-note @+1 {{"b" is annotated here}}
                %b: tensor<2xf32> {nn.param = #nn.param<"b", init = ones>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}]>})
    -> (tensor<4x2xf32> {nn.output = "o"}) {
  %0 = nn.mul %x, %s : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  %1 = nn.matmul %0, %w : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %2 = nn.add %1, %b : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// -----

dist.mesh @mesh <["tensor"=2]>

// A hand shards the hidden size of one weight: its pair is left alone, with both places, and the next pair is sharded as ever.
// CHECK-LABEL: func.func @hidden
// CHECK-SAME: tensor<4xf32> {nn.param = #nn.param<"g"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w1"
// CHECK-SAME: tensor<8x4xf32> {nn.param = #nn.param<"w2"
// CHECK-SAME: [{}, {"tensor"}]>, {{[^%]*}}nn.param = #nn.param<"w3"
// CHECK-SAME: [{"tensor"}, {}]>, {{[^%]*}}nn.param = #nn.param<"w4"
func.func @hidden(%x: tensor<2x4xf32> {nn.input = "x"}, %g: tensor<4xf32> {nn.param = #nn.param<"g", init = ones>},
                  // expected-remark @+1 {{the annotation of "w1" keeps dimension 1 from being sharded over "tensor", so tensor parallelism leaves alone what belongs to it: #dist.sharding<@mesh, [{"tensor"}, {}]>}}
                  %w1: tensor<4x8xf32> {nn.param = #nn.param<"w1", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"tensor"}, {}]>},
                  %w2: tensor<8x4xf32> {nn.param = #nn.param<"w2", init = zeros>},
                  %w3: tensor<4x8xf32> {nn.param = #nn.param<"w3", init = zeros>}, %w4: tensor<8x4xf32> {nn.param = #nn.param<"w4", init = zeros>})
    -> (tensor<f32> {nn.loss}) {
  %n, %r = nn.rms_norm %x, %g eps = 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>
  // expected-note @+1 {{it would be sharded for this op}}
  %0 = nn.matmul %n, %w1 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = nn.matmul %0, %w2 : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %2 = nn.add %1, %n : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = nn.matmul %2, %w3 : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %4 = nn.matmul %3, %w4 : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss = nn.reduce sum %4 dims = [0, 1] : tensor<2x4xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nothing is said in silence: a model without such a dimension.
// expected-error @+1 {{tensor parallelism over "tensor" finds nothing to shard: no dimension that one product with a parameter makes and another one sums over, no vocabulary; annotate parameters by hand or leave the strategy out}}
module {
  dist.mesh @mesh <["tensor"=2]>
  func.func @f(%x: tensor<10x6xf32> {nn.input = "x"}, %w: tensor<6x4xf32> {nn.param = #nn.param<"w", init = zeros>}) -> (tensor<f32> {nn.loss}) {
    %0 = nn.matmul %x, %w : (tensor<10x6xf32>, tensor<6x4xf32>) -> tensor<10x4xf32>
    %loss = nn.reduce sum %0 dims = [0, 1] : tensor<10x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error @+1 {{tensor parallelism needs mesh axis "tensor", the mesh is #dist.mesh<["data"=2]>}}
dist.mesh @mesh <["data"=2]>
