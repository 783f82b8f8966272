// What the stages of ZeRO lay flat in buckets: state and gradients from stage 1 on, parameters in stage 3.
// RUN: shoal-opt %s -verify-diagnostics --dist-zero=stage=1 | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: shoal-opt %s -verify-diagnostics --dist-zero=stage=2 | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: shoal-opt %s --dist-zero=stage=3 2>%t.remarks | FileCheck %s --check-prefixes=CHECK,THREE
// RUN: not shoal-opt %s --dist-zero=stage=0 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not shoal-opt %s --dist-zero=axes=replica 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: shoal-opt %s --dist-zero=stage=3 --dist-propagate -o - 2>/dev/null | FileCheck %s --check-prefix=WHY

// RUN: FileCheck %s --check-prefix=LAYERS < %t.remarks

// LAYERS: remark: ZeRO finds no layers (nn.layer): each parameter is gathered on its own
// STAGE: error: stage must be 1, 2 or 3, got: 0
// AXIS: error: --zero needs mesh axis "replica", the mesh is #dist.mesh<["data"=4]>
dist.mesh @mesh <["data"=4]>

// Propagation, which knows the axes of dimensions only, keeps why.
// WHY: dist.flat = #dist.flat<{"data"}, per_use>, {{.*}}dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}, nn.param = #nn.param<"w"

// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<8x4xf32> {nn.input = "x"}
// ONE-SAME: tensor<4x10xf32> {nn.param = #nn.param<"w", init = zeros>}
// TWO-SAME: tensor<4x10xf32> {nn.param = #nn.param<"w", init = zeros>}
// THREE-SAME: tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}, nn.param = #nn.param<"w", init = zeros>}
// ONE-SAME: tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}>, dist.why = {data = #dist.cause<"the optimizer's state" by "--zero 1">}, nn.state = #nn.state<"w.v"
// TWO-SAME: tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}>, {{.*}}nn.state = #nn.state<"w.v"
// THREE-SAME: tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}>, {{.*}}nn.state = #nn.state<"w.v"
// What a hand has sharded over the axis stays as it is, with all that belongs to it.
// CHECK-SAME: tensor<8x3xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>, nn.param
// CHECK-SAME: tensor<8x3xf32> {nn.state = #nn.state<"u.v"
// ONE-SAME: (tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}>, dist.why = {data = #dist.cause<"the gradients" by "--zero 1">}, nn.grad = "w"}
// TWO-SAME: (tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}, per_use>, {{.*}}nn.grad = "w"}
// THREE-SAME: (tensor<4x10xf32> {dist.flat = #dist.flat<{"data"}, per_use>, {{.*}}nn.grad = "w"}
// CHECK-SAME: tensor<8x3xf32> {nn.grad = "u"}
func.func @step(%x: tensor<8x4xf32> {nn.input = "x"},
                %w: tensor<4x10xf32> {nn.param = #nn.param<"w", init = zeros>},
                %m: tensor<4x10xf32> {nn.state = #nn.state<"w.v", of = "w", init = 0.0>},
                // expected-remark @below {{ZeRO leaves "u" as it is annotated: #dist.sharding<@mesh, [{"data"}, {}]>}}
                %u: tensor<8x3xf32> {nn.param = #nn.param<"u", init = zeros>, dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                %n: tensor<8x3xf32> {nn.state = #nn.state<"u.v", of = "u", init = 0.0>})
    -> (tensor<4x10xf32> {nn.grad = "w"}, tensor<8x3xf32> {nn.grad = "u"}) {
  %g = nn.add %w, %m : (tensor<4x10xf32>, tensor<4x10xf32>) -> tensor<4x10xf32>
  %h = nn.add %u, %n : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  return %g, %h : tensor<4x10xf32>, tensor<8x3xf32>
}

// Evaluation and other functions have no gradient.
// CHECK-LABEL: func.func @other
// CHECK-NOT: dist.flat
func.func @other(%w: tensor<4x10xf32> {nn.param = #nn.param<"w", init = zeros>}) -> tensor<4x10xf32> {
  return %w : tensor<4x10xf32>
}

// Of a master the step reads a cast, so it lies flat from stage 1 on.
// CHECK-LABEL: func.func @mixed
// ONE-SAME: dist.flat = #dist.flat<{"data"}>, {{.*}}nn.master
// TWO-SAME: dist.flat = #dist.flat<{"data"}>, {{.*}}nn.master
// THREE-SAME: dist.flat = #dist.flat<{"data"}, per_use>, {{.*}}nn.master
func.func @mixed(%w: tensor<4xf32> {nn.master, nn.param = #nn.param<"w", init = zeros>}) -> (tensor<4xf32> {nn.grad = "w"}) {
  return %w : tensor<4xf32>
}
