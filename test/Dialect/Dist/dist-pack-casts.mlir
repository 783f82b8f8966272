// Gathers of parameters that are cast: those of the first layers start behind the casts of the shards and nothing else does,
// each of the others when the layer before the one in front is read, through what is computed of a parameter alone, too.
// RUN: shoal-opt %s --dist-pack | FileCheck %s

dist.mesh @mesh <["data"=2]>
// CHECK-LABEL: func.func @layers
// CHECK-COUNT-4: nn.cast %{{.*}} : tensor<16xf32> -> tensor<16xbf16>
// CHECK: dist.reshard {{.*}} {dist.fetch, {{.*}}nn.layer = "h.0"
// CHECK: dist.reshard {{.*}} {dist.fetch, {{.*}}nn.layer = "h.1"
// CHECK-NOT: dist.fetch
// CHECK: nn.matmul {{.*}}nn.layer = "h.0"
// CHECK: dist.reshard {{.*}} {dist.fetch, {{.*}}nn.layer = "h.2"
// CHECK: nn.matmul {{.*}}nn.layer = "h.1"
// CHECK-NOT: dist.fetch
// CHECK: nn.add {{.*}}nn.layer = "h.1"
// CHECK: dist.reshard {{.*}} {dist.fetch, {{.*}}nn.layer = "h.3"
// CHECK: nn.matmul {{.*}}nn.layer = "h.2"
// CHECK: nn.matmul {{.*}}nn.layer = "h.3"
func.func @layers(%x: tensor<4x4xbf16> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}, %y: tensor<4x4xf32> {nn.input = "y", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                  %a: tensor<4x4xf32> {nn.master, nn.param = #nn.param<"a", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
                  %b: tensor<4x4xf32> {nn.master, nn.param = #nn.param<"b", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
                  %c: tensor<4x4xf32> {nn.master, nn.param = #nn.param<"c", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
                  %d: tensor<4x4xf32> {nn.master, nn.param = #nn.param<"d", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}})
    -> (tensor<f32> {nn.loss},
        tensor<4x4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
        tensor<4x4xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
        tensor<4x4xf32> {nn.grad = "c", dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
        tensor<4x4xf32> {nn.grad = "d", dist.flat = #dist.flat<{"data"}, per_use>, dist.why = {data = #dist.cause<"the parameters" by "--zero 3">}},
        tensor<4x4xf32> {nn.updates = "a"},
        tensor<4x4xf32> {nn.updates = "b"},
        tensor<4x4xf32> {nn.updates = "c"},
        tensor<4x4xf32> {nn.updates = "d"}) {
  %ca = nn.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
  %cb = nn.cast %b : tensor<4x4xf32> -> tensor<4x4xbf16>
  %cc = nn.cast %c : tensor<4x4xf32> -> tensor<4x4xbf16>
  %cd = nn.cast %d : tensor<4x4xf32> -> tensor<4x4xbf16>
  %0 = nn.matmul %x, %ca {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %1 = nn.matmul %0, %cb {nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %wide = nn.cast %cb {nn.layer = "h.1"} : tensor<4x4xbf16> -> tensor<4x4xf32>
  %2 = nn.cast %1 {nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : tensor<4x4xbf16> -> tensor<4x4xf32>
  %3 = nn.add %2, %wide {nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = nn.cast %3 {nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : tensor<4x4xf32> -> tensor<4x4xbf16>
  %5 = nn.matmul %4, %cc {nn.layer = "h.2", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %6 = nn.matmul %5, %cd {nn.layer = "h.3", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %7 = nn.cast %6 {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : tensor<4x4xbf16> -> tensor<4x4xf32>
  %l = nn.reduce sum %7 dims = [0, 1] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]} : tensor<4x4xf32> -> tensor<f32>
  %ga = nn.matmul %y, %y {transpose_a, dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gb = nn.matmul %y, %y {transpose_a, dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gc = nn.matmul %y, %y {transpose_a, dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gd = nn.matmul %y, %y {transpose_a, dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %na = nn.sgd_update %a, %ga lr = %lr {weight_decay = 0.0 : f64} : tensor<4x4xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %gb lr = %lr {weight_decay = 0.0 : f64} : tensor<4x4xf32>, tensor<f32>
  %nc = nn.sgd_update %c, %gc lr = %lr {weight_decay = 0.0 : f64} : tensor<4x4xf32>, tensor<f32>
  %nd = nn.sgd_update %d, %gd lr = %lr {weight_decay = 0.0 : f64} : tensor<4x4xf32>, tensor<f32>
  return %l, %ga, %gb, %gc, %gd, %na, %nb, %nc, %nd : tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
