// What lies flat becomes buckets: arguments and results that hold several tensors, updates of all of them, a gather for
// each cluster of readers.
// RUN: shoal-opt %s --split-input-file --dist-pack -verify-diagnostics | FileCheck %s
// RUN: shoal-opt %s --split-input-file --dist-pack=bucket-mb=0.00005 2>/dev/null | FileCheck %s --check-prefix=SMALL
// RUN: shoal-opt %s --split-input-file --dist-pack=bucket-mb=0.0004 2>/dev/null | FileCheck %s --check-prefix=RUNS
// RUN: shoal-opt %s --split-input-file --dist-pack=overlap=false 2>/dev/null | FileCheck %s --check-prefix=LATE
// RUN: shoal-opt %s --split-input-file --dist-pack=axes=tensor 2>/dev/null | FileCheck %s --check-prefix=OTHER

// State and gradients are sharded; the parameters stay whole, and are gathered where they are new. What stands between
// gradient and update, and the sum of squares, is done once per bucket. 15 elements over 2 devices are padded to 16.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @once
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x4xf32>
// CHECK-SAME: %[[P:[^:]*]]: tensor<16xf32> {dist.bucket = #dist.bucket<[<#nn.param<"b", init = ones>, tensor<3xf32>>, <#nn.param<"w", init = zeros, file = [12]>, tensor<4x3xf32>>]>, dist.sharding = #dist.sharding<@mesh, [{}]>, nn.param = #nn.param<"bucket.0", init = zeros>}
// CHECK-SAME: %[[V:[^:]*]]: tensor<16xf32> {dist.bucket = #dist.bucket<[<#nn.state<"b.velocity", of = "b", init = 0.0>, tensor<3xf32>>, <#nn.state<"w.velocity", {{[^>]*}}>, tensor<4x3xf32>>]>, dist.sharding = #dist.sharding<@mesh, [{"data"}]>, dist.why = {data = #dist.cause<"the optimizer's state" by "--zero 1">}, nn.state = #nn.state<"bucket.0.velocity", of = "bucket.0", init = 0.0>}
// CHECK-SAME: -> (tensor<16xf32> {dist.bucket = #dist.bucket<[<"b", tensor<3xf32>>, <"w", tensor<4x3xf32>>]>, dist.sharding = #dist.sharding<@mesh, [{"data"}]>, nn.grad = "bucket.0"}
// CHECK-SAME: tensor<16xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, nn.updates = "bucket.0"}
// CHECK-SAME: tensor<16xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}]>, nn.updates = "bucket.0.velocity"}
// CHECK-DAG: %[[W:.*]] = dist.unpack %[[P]][3:15]
// CHECK-DAG: %[[Z:.*]] = nn.constant {{.*}}dense<0.000000e+00> : tensor<1xf32>
// CHECK-DAG: nn.matmul %[[X]], %[[W]]
// CHECK: %[[B:.*]] = dist.pack %{{.*}}[0:3], %{{.*}}[0:12], %[[Z]][0:1] group 0 at 0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>], exec.class = "grad"}
// CHECK: %[[G:.*]] = dist.reshard %[[B]] <@mesh, [{"data"}]> {{{.*}}reason = "gradients of b, w"}
// CHECK: %[[Q:.*]] = nn.mul %[[G]], %[[G]] {dist.shardings = [#dist.sharding<@mesh, [{"data"}]>]}
// CHECK: %[[S:.*]] = nn.reduce sum %[[Q]] dims = [0] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]}
// CHECK: %[[N:.*]] = nn.sqrt %[[S]]
// CHECK: %[[C:.*]] = nn.mul %[[G]], %[[N]] {{.*}} : (tensor<16xf32>, tensor<f32>)
// CHECK: %[[NEW:.*]], %[[NV:.*]] = nn.momentum_update %[[P]], %[[C]], %[[V]] lr = %{{[^ ]*}} {dist.shardings = [#dist.sharding<@mesh, [{"data"}]>, #dist.sharding<@mesh, [{"data"}]>]
// CHECK: %[[R:.*]] = dist.reshard %[[NEW]] <@mesh, [{}]> {{.*}}reason = "new values of b, w"
// CHECK: return %[[G]], %[[R]], %[[NV]]

// 60 bytes of gradients are two buckets of at most 52, which cut w: its state lies in both. Most of both is w, so their gradients
// share a storage. Parameters stay one argument, and what is gathered for each bucket is its new value.
// SMALL-LABEL: func.func @once
// SMALL-SAME: %[[P:[^:]*]]: tensor<16xf32> {dist.bucket = #dist.bucket<[<#nn.param<"b", init = ones>, tensor<3xf32>>, <#nn.param<"w", init = zeros, file = [12]>, tensor<4x3xf32>>]>, dist.sharding = #dist.sharding<@mesh, [{}]>, nn.param = #nn.param<"bucket.0", init = zeros>}
// SMALL-SAME: tensor<8xf32> {dist.bucket = #dist.bucket<[<#nn.state<"w.velocity", {{[^>]*}}>, tensor<4x3xf32>[5:12]>]>, {{.*}}nn.state = #nn.state<"bucket.1.velocity", of = "bucket.0", init = 0.0>}
// SMALL-SAME: tensor<8xf32> {dist.bucket = #dist.bucket<[<#nn.state<"b.velocity", {{[^>]*}}>, tensor<3xf32>>, <#nn.state<"w.velocity", {{[^>]*}}>, tensor<4x3xf32>[0:5]>]>, {{.*}}nn.state = #nn.state<"bucket.0.velocity", of = "bucket.0", init = 0.0>}
// SMALL-SAME: -> (tensor<8xf32> {dist.bucket = #dist.bucket<[<"w", tensor<4x3xf32>[5:12]>]>, {{.*}}nn.grad = "bucket.1"}
// SMALL-SAME: tensor<8xf32> {dist.bucket = #dist.bucket<[<"b", tensor<3xf32>>, <"w", tensor<4x3xf32>[0:5]>]>, {{.*}}nn.grad = "bucket.0"}
// SMALL-SAME: tensor<16xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, nn.updates = "bucket.0"}
// SMALL: dist.pack %{{.*}}[0:3], %{{.*}}[0:5] group 0 at 0
// SMALL: dist.pack %{{.*}}[5:12], %{{.*}}[0:1] group 0 at 8
// SMALL: nn.add %{{.*}} {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]} : (tensor<f32>, tensor<f32>)
// SMALL: %[[P0:.*]] = dist.unpack %[[P]][0:8]
// SMALL: %[[P1:.*]] = dist.unpack %[[P]][8:16]
// SMALL: nn.momentum_update %[[P0]], {{.*}} : tensor<8xf32>
// SMALL: nn.momentum_update %[[P1]], {{.*}} : tensor<8xf32>
// SMALL: dist.pack %{{.*}}[0:8], %{{.*}}[0:8] group 1 at 0 {{{.*}}exec.class = "param"}

// Over other axes it is a step like any other.
// OTHER-LABEL: func.func @once
// OTHER-NOT: dist.pack
// OTHER: dist.flat = #dist.flat<{"data"}>
func.func @once(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<4x3xf32> {nn.param = #nn.param<"w", init = zeros, file = [12]>},
                %b: tensor<3xf32> {nn.param = #nn.param<"b", init = ones>},
                %wv: tensor<4x3xf32> {nn.state = #nn.state<"w.velocity", of = "w", init = 0.0>, dist.flat = #dist.flat<{"data"}>, dist.why = {data = #dist.cause<"the optimizer's state" by "--zero 1">}},
                %bv: tensor<3xf32> {nn.state = #nn.state<"b.velocity", of = "b", init = 0.0>, dist.flat = #dist.flat<{"data"}>, dist.why = {data = #dist.cause<"the optimizer's state" by "--zero 1">}})
    -> (tensor<4x3xf32> {nn.grad = "w", dist.flat = #dist.flat<{"data"}>}, tensor<3xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}>},
        tensor<4x3xf32> {nn.updates = "w"}, tensor<4x3xf32> {nn.updates = "w.velocity"}, tensor<3xf32> {nn.updates = "b"}, tensor<3xf32> {nn.updates = "b.velocity"}) {
  %0 = nn.matmul %x, %w {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %gb = nn.reduce sum %0 dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<4x3xf32> -> tensor<3xf32>
  %gw = nn.matmul %x, %0 {transpose_a, dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %qw = nn.mul %gw, %gw : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %sw = nn.reduce sum %qw dims = [0, 1] : tensor<4x3xf32> -> tensor<f32>
  %qb = nn.mul %gb, %gb : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %sb = nn.reduce sum %qb dims = [0] : tensor<3xf32> -> tensor<f32>
  %sum = nn.add %sw, %sb : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %norm = nn.sqrt %sum : tensor<f32>
  %cw = nn.mul %gw, %norm : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %cb = nn.mul %gb, %norm : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %nw, %nwv = nn.momentum_update %w, %cw, %wv lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4x3xf32>, tensor<f32>
  %nb, %nbv = nn.momentum_update %b, %cb, %bv lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<f32>
  return %gw, %gb, %nw, %nwv, %nb, %nbv : tensor<4x3xf32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// What is updated otherwise is another bucket: by decay, and by what a hand writes between gradient and update, which
// stays whole when it is no product with a scalar. Without state only the update is sharded.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @kinds
// CHECK-SAME: tensor<4xf32> {dist.bucket = #dist.bucket<[<#nn.param<"a", {{.*}}nn.param = #nn.param<"bucket.0"
// CHECK-SAME: tensor<4xf32> {dist.bucket = #dist.bucket<[<#nn.param<"b", {{.*}}nn.param = #nn.param<"bucket.1"
// CHECK-SAME: tensor<4xf32> {nn.param = #nn.param<"c", init = zeros>}
// CHECK-NOT: dist.flat
// CHECK: return
func.func @kinds(%x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                 %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>},
                 %c: tensor<4xf32> {nn.param = #nn.param<"c", init = zeros>})
    -> (tensor<4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}>}, tensor<4xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}>},
        tensor<4xf32> {nn.grad = "c", dist.flat = #dist.flat<{"data"}>},
        tensor<4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "b"}, tensor<4xf32> {nn.updates = "c"}) {
  %g = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %na = nn.sgd_update %a, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %g lr = %lr {weight_decay = 0.1 : f64} : tensor<4xf32>, tensor<f32>
  %t = nn.tanh %g : tensor<4xf32>
  // expected-remark @below {{"c" stays whole and in no bucket: its update reads something else than the gradient times scalars}}
  %nc = nn.sgd_update %c, %t lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %g, %g, %g, %na, %nb, %nc : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Readers of one layer and one part of the step share a gather of their own, which starts when the layer before the one in
// front has read what it reads. What is computed of a parameter alone is computed for each reader.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @per_use
// CHECK-SAME: %[[A:[^:]*]]: tensor<16xf32> {dist.bucket = #dist.bucket<[<#nn.param<"a", init = zeros>, tensor<4x4xf32>>]>, dist.flat = #dist.flat<{"data"}, per_use>, dist.sharding = #dist.sharding<@mesh, [{"data"}]>
// CHECK-SAME: %[[B:[^:]*]]: tensor<16xf32> {dist.bucket = #dist.bucket<[<#nn.param<"b",
// CHECK-DAG: %[[A1:.*]] = dist.reshard %[[A]] <@mesh, [{}]> {dist.fetch, {{.*}}exec.class = "workspace", nn.layer = "h.0", reason = "the parameters, for the forward pass"}
// CHECK-DAG: %[[B1:.*]] = dist.reshard %[[B]] <@mesh, [{}]> {dist.fetch, {{.*}}nn.layer = "h.1", reason = "the parameters, for the forward pass"}
// CHECK-DAG: %[[RA:.*]] = dist.unpack %[[A1]][0:16] {{.*}} -> tensor<4x4xf32>
// CHECK: nn.matmul %{{.*}}, %[[RA]]
// CHECK: %[[RB:.*]] = dist.unpack %[[B1]][0:16]
// CHECK: %[[RBR:.*]] = nn.reshape %[[RB]]
// CHECK-DAG: nn.matmul %{{.*}}, %[[RBR]]
// CHECK-DAG: %[[B2:.*]] = dist.reshard %[[B]] <@mesh, [{}]> {dist.fetch, {{.*}}nn.layer = "h.1", reason = "the parameters, for the backward pass"}
// CHECK: %[[RB2:.*]] = dist.unpack %[[B2]][0:16]
// CHECK: %[[RBR2:.*]] = nn.reshape %[[RB2]]
// CHECK: nn.matmul %{{.*}}, %[[RBR2]] {{{.*}}transpose_b}
// Backward does not read a.
// CHECK-NOT: dist.reshard %[[A]]
// CHECK: return

// Gathered side by side, buckets that cut a parameter are it.
// SMALL-LABEL: func.func @per_use
// SMALL: %[[G0:.*]] = dist.reshard %{{.*}} <@mesh, [{}]> {dist.fetch, {{.*}} : tensor<8xf32>
// SMALL: %[[G1:.*]] = dist.reshard %{{.*}} <@mesh, [{}]> {dist.fetch, {{.*}} : tensor<8xf32>
// SMALL: %[[ALL:.*]] = dist.pack %[[G0]][0:8], %[[G1]][0:8] group {{[0-9]+}} at 0 {{{.*}}exec.class = "workspace"}
// SMALL: dist.unpack %[[ALL]][0:16] {{.*}} -> tensor<4x4xf32>

// LATE-LABEL: func.func @per_use
// LATE: dist.reshard
// LATE-NEXT: dist.unpack
// LATE-NEXT: nn.matmul
// LATE-NEXT: dist.reshard
// LATE-NEXT: dist.unpack
func.func @per_use(%x: tensor<4x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                   %a: tensor<4x4xf32> {nn.param = #nn.param<"a", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>},
                   %b: tensor<16xf32> {nn.param = #nn.param<"b", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}, per_use>}, tensor<16xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}, per_use>},
        tensor<4x4xf32> {nn.updates = "a"}, tensor<16xf32> {nn.updates = "b"}) {
  %r = nn.reshape %b : tensor<16xf32> -> tensor<4x4xf32>
  %0 = nn.matmul %x, %a {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %0, %r {nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]} : tensor<4x4xf32> -> tensor<f32>
  %d = nn.matmul %1, %r {transpose_b, nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gr = nn.matmul %0, %1 {transpose_a, nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gb = nn.reshape %gr {nn.layer = "h.1", dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<4x4xf32> -> tensor<16xf32>
  %ga = nn.matmul %x, %d {transpose_a, nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %na = nn.sgd_update %a, %ga lr = %lr {weight_decay = 0.0 : f64} : tensor<4x4xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %gb lr = %lr {weight_decay = 0.0 : f64} : tensor<16xf32>, tensor<f32>
  return %l, %ga, %gb, %na, %nb : tensor<f32>, tensor<4x4xf32>, tensor<16xf32>, tensor<4x4xf32>, tensor<16xf32>
}

// -----

// A gradient that another axis has reduced first comes in a bucket of that axis, behind the backward pass: it lies in none with
// others of its layer, which are not to wait for it.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @late
// CHECK-SAME: tensor<16xf32> {dist.bucket = #dist.bucket<[<#nn.param<"a", init = zeros>, tensor<4x4xf32>>]>
// CHECK-SAME: tensor<4xf32> {dist.bucket = #dist.bucket<[<#nn.param<"s", init = zeros>, tensor<4xf32>>]>
func.func @late(%x: tensor<4x4xf32> {nn.input = "x", dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
                %a: tensor<4x4xf32> {nn.param = #nn.param<"a", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>},
                %s: tensor<4xf32> {nn.param = #nn.param<"s", init = zeros>, dist.flat = #dist.flat<{"data"}, per_use>})
    -> (tensor<f32> {nn.loss}, tensor<4x4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}, per_use>}, tensor<4xf32> {nn.grad = "s", dist.flat = #dist.flat<{"data"}, per_use>},
        tensor<4x4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "s"}) {
  %0 = nn.mul %x, %s {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %1 = nn.matmul %0, %a {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{"data"}, {}]>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = nn.reduce sum %1 dims = [0, 1] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"data"}>]} : tensor<4x4xf32> -> tensor<f32>
  %ga = nn.matmul %0, %1 {transpose_a, nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"data"}>]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %part = nn.reduce sum %1 dims = [0] {nn.layer = "h.0", dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data", "tensor"}>]} : tensor<4x4xf32> -> tensor<4xf32>
  %pack = dist.pack %part[0:4] group 0 at 0 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data", "tensor"}>]} : (tensor<4xf32>) -> tensor<4xf32>
  %sum = dist.all_reduce {"tensor"} sum %pack {reason = "by hand", dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<4xf32>
  %gs = dist.unpack %sum[0:4] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : (tensor<4xf32>) -> tensor<4xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %na = nn.sgd_update %a, %ga lr = %lr {weight_decay = 0.0 : f64} : tensor<4x4xf32>, tensor<f32>
  %ns = nn.sgd_update %s, %gs lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %l, %ga, %gs, %na, %ns : tensor<f32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4xf32>
}

// -----

// By hand, a step need not return each gradient, and each argument has its own cause.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @some_gradients
// CHECK-SAME: dist.bucket = #dist.bucket<[<#nn.state<"a.velocity", {{.*}}dist.why = {data = #dist.cause<"the annotation of \22a\22
// CHECK-SAME: dist.bucket = #dist.bucket<[<#nn.state<"b.velocity", {{.*}}dist.why = {data = #dist.cause<"the annotation of \22b\22
// CHECK-SAME: -> (tensor<4xf32> {dist.bucket = #dist.bucket<[<"a", tensor<4xf32>>]>
func.func @some_gradients(
    %x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>},
    %av: tensor<4xf32> {nn.state = #nn.state<"a.velocity", of = "a", init = 0.0>, dist.flat = #dist.flat<{"data"}>},
    %bv: tensor<4xf32> {nn.state = #nn.state<"b.velocity", of = "b", init = 0.0>, dist.flat = #dist.flat<{"data"}>})
    -> (tensor<4xf32> {nn.grad = "a"}, tensor<4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "b"},
        tensor<4xf32> {nn.updates = "a.velocity"}, tensor<4xf32> {nn.updates = "b.velocity"}) {
  %g = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %h = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %lr = nn.constant dense<0.1> : tensor<f32>
  %na, %nav = nn.momentum_update %a, %g, %av lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %nb, %nbv = nn.momentum_update %b, %h, %bv lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %g, %na, %nb, %nav, %nbv : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What two parameters have in common is counted twice in the norm, as on one device: it belongs to neither bucket.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @common_gradient
// CHECK: %[[S:.*]] = nn.reduce sum %{{.*}} dims = [0] : tensor<4xf32> -> tensor<f32>
// CHECK: nn.add %[[S]], %[[S]]
func.func @common_gradient(
    %x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>},
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>})
    -> (tensor<4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}>}, tensor<4xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}>},
        tensor<4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "b"}) {
  %g = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %q = nn.mul %g, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = nn.reduce sum %q dims = [0] : tensor<4xf32> -> tensor<f32>
  %t = nn.add %s, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %lr = nn.sqrt %t : tensor<f32>
  %na = nn.sgd_update %a, %g lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %g lr = %lr {weight_decay = 0.1 : f64} : tensor<4xf32>, tensor<f32>
  return %g, %g, %na, %nb : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What stays out of the buckets is added to what lies in them: a sum on the way is of other summands than on one device, and has
// its number no more.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @mixed_norm
// CHECK-NOT: dist.id = 5
// CHECK: return
func.func @mixed_norm(
    %x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}, %lr: tensor<f32>,
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>},
    %c: tensor<4xf32> {nn.param = #nn.param<"c", init = zeros>})
    -> (tensor<f32> {nn.metric = "norm"}, tensor<4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}>}, tensor<4xf32> {nn.grad = "b"},
        tensor<4xf32> {nn.grad = "c", dist.flat = #dist.flat<{"data"}>},
        tensor<4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "b"}, tensor<4xf32> {nn.updates = "c"}) {
  %ga = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %gb = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %gc = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %qa = nn.mul %ga, %ga : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sa = nn.reduce sum %qa dims = [0] : tensor<4xf32> -> tensor<f32>
  %qb = nn.mul %gb, %gb : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sb = nn.reduce sum %qb dims = [0] : tensor<4xf32> -> tensor<f32>
  %qc = nn.mul %gc, %gc : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %sc = nn.reduce sum %qc dims = [0] : tensor<4xf32> -> tensor<f32>
  %ab = nn.add %sa, %sb {dist.id = 5 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %abc = nn.add %ab, %sc {dist.id = 6 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %norm = nn.sqrt %abc : tensor<f32>
  %na = nn.sgd_update %a, %ga lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %gb lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %nc = nn.sgd_update %c, %gc lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %norm, %ga, %gb, %gc, %na, %nb, %nc : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A tensor that is cut, and most of none of its buckets: each has a storage of its own.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// SMALL-LABEL: func.func @cut
// SMALL: dist.pack %{{.*}}[0:6], %{{.*}}[0:4] group 0 at 0
// SMALL: dist.pack %{{.*}}[4:6], %{{.*}}[0:6] group 1 at 0
func.func @cut(
    %x: tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}, %lr: tensor<f32>,
    %a: tensor<6xf32> {nn.param = #nn.param<"a", init = zeros>}, %b: tensor<6xf32> {nn.param = #nn.param<"b", init = zeros>},
    %c: tensor<6xf32> {nn.param = #nn.param<"c", init = zeros>})
    -> (tensor<6xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}>}, tensor<6xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}>},
        tensor<6xf32> {nn.grad = "c", dist.flat = #dist.flat<{"data"}>},
        tensor<6xf32> {nn.updates = "a"}, tensor<6xf32> {nn.updates = "b"}, tensor<6xf32> {nn.updates = "c"}) {
  %ga = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x6xf32> -> tensor<6xf32>
  %gb = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x6xf32> -> tensor<6xf32>
  %gc = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x6xf32> -> tensor<6xf32>
  %na = nn.sgd_update %a, %ga lr = %lr {weight_decay = 0.0 : f64} : tensor<6xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %gb lr = %lr {weight_decay = 0.0 : f64} : tensor<6xf32>, tensor<f32>
  %nc = nn.sgd_update %c, %gc lr = %lr {weight_decay = 0.0 : f64} : tensor<6xf32>, tensor<f32>
  return %ga, %gb, %gc, %na, %nb, %nc : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Gathered once for the step, in two buckets that cut b: they lie side by side, or are freed apart where the first is 16 times as
// large as b. Then each pass has a copy of it.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// RUNS-LABEL: func.func @runs
// RUNS-DAG: %[[G0:.*]] = dist.reshard %{{.*}} : tensor<96xf32>
// RUNS-DAG: %[[G1:.*]] = dist.reshard %{{.*}} : tensor<36xf32>
// RUNS: %[[B:.*]] = dist.unpack %[[G0]][94:96], %[[G1]][0:2] {{{.*}}exec.class = "workspace"} : {{.*}} -> tensor<4xf32>
// RUNS: dist.unpack %[[G0]][0:94] {{.*}} -> tensor<94xf32>
// RUNS: dist.unpack %[[G1]][2:36] {{.*}} -> tensor<34xf32>
// RUNS: nn.mul %[[B]], %[[B]]
// RUNS: %[[AGAIN:.*]] = dist.unpack %[[G0]][94:96], %[[G1]][0:2] {{{.*}}exec.class = "workspace", nn.recompute} : {{.*}} -> tensor<4xf32>
// RUNS-NEXT: nn.neg %[[AGAIN]]
func.func @runs(
    %lr: tensor<f32>,
    %a: tensor<94xf32> {nn.param = #nn.param<"a", init = zeros>, dist.flat = #dist.flat<{"data"}>}, %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>, dist.flat = #dist.flat<{"data"}>},
    %c: tensor<34xf32> {nn.param = #nn.param<"c", init = zeros>, dist.flat = #dist.flat<{"data"}>})
    -> (tensor<f32> {nn.loss}, tensor<94xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}>}, tensor<4xf32> {nn.grad = "b", dist.flat = #dist.flat<{"data"}>},
        tensor<34xf32> {nn.grad = "c", dist.flat = #dist.flat<{"data"}>},
        tensor<94xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "b"}, tensor<34xf32> {nn.updates = "c"}) {
  %0 = nn.mul %b, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %l = nn.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  %ga = nn.neg %a {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<94xf32>
  %gb = nn.neg %b {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<4xf32>
  %gc = nn.neg %c {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<34xf32>
  %na = nn.sgd_update %a, %ga lr = %lr {weight_decay = 0.0 : f64} : tensor<94xf32>, tensor<f32>
  %nb = nn.sgd_update %b, %gb lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  %nc = nn.sgd_update %c, %gc lr = %lr {weight_decay = 0.0 : f64} : tensor<34xf32>, tensor<f32>
  return %l, %ga, %gb, %gc, %na, %nb, %nc : tensor<f32>, tensor<94xf32>, tensor<4xf32>, tensor<34xf32>, tensor<94xf32>, tensor<4xf32>, tensor<34xf32>
}

// -----

// What no update has stays whole, and a remark says so: a parameter, state that the update does not read, a gradient of a
// step without updates.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @without_updates
// CHECK-NOT: dist.flat
// CHECK: return
func.func @without_updates(
    %x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}, %lr: tensor<f32>,
    // expected-remark @+1 {{"a" stays whole and in no bucket: no optimizer updates it}}
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>, dist.flat = #dist.flat<{"data"}>},
    %b: tensor<4xf32> {nn.param = #nn.param<"b", init = zeros>},
    // expected-remark @+1 {{"b.velocity" stays whole and in no bucket: no optimizer update reads it}}
    %bv: tensor<4xf32> {nn.state = #nn.state<"b.velocity", of = "b", init = 0.0>, dist.flat = #dist.flat<{"data"}>})
    -> (tensor<4xf32> {nn.grad = "a", dist.flat = #dist.flat<{"data"}>}, tensor<4xf32> {nn.updates = "b"}) {
  // expected-remark @+1 {{gradient of "a" stays whole and in no bucket: no optimizer update reads it}}
  %ga = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %gb = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  %nb = nn.sgd_update %b, %gb lr = %lr {weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %ga, %nb : tensor<4xf32>, tensor<4xf32>
}

// -----

// Parts of one update that lie flat over axes of two runs stay whole in both.
dist.mesh @mesh <["data"=2, "tensor"=2]>
// CHECK-LABEL: func.func @torn
// CHECK-NOT: dist.flat
// CHECK: return
// OTHER-LABEL: func.func @torn
// OTHER-NOT: dist.flat
// OTHER: return
func.func @torn(
    %x: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {}]>}, %lr: tensor<f32>,
    %a: tensor<4xf32> {nn.param = #nn.param<"a", init = zeros>, dist.flat = #dist.flat<{"data"}>},
    %av: tensor<4xf32> {nn.state = #nn.state<"a.velocity", of = "a", init = 0.0>, dist.flat = #dist.flat<{"tensor"}>})
    -> (tensor<4xf32> {nn.updates = "a"}, tensor<4xf32> {nn.updates = "a.velocity"}) {
  %g = nn.reduce sum %x dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"data"}>]} : tensor<8x4xf32> -> tensor<4xf32>
  // expected-remark @+1 {{"a" stays whole and in no bucket: its parts lie flat over different axes}}
  %na, %nav = nn.momentum_update %a, %g, %av lr = %lr {momentum = 0.9 : f64, weight_decay = 0.0 : f64} : tensor<4xf32>, tensor<f32>
  return %na, %nav : tensor<4xf32>, tensor<4xf32>
}
