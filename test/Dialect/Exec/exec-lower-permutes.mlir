// RUN: shoal-opt %s -split-input-file --exec-lower --exec-verify | FileCheck %s
// RUN: shoal-opt %s -split-input-file --exec-lower="overlap=false" | FileCheck %s --check-prefix=ALONE

// Two steps of a ring. Keys and values hop beside each other and beside a reduction; so do gradients, which are added to
// on the way and start behind the next hop of the keys: a hop waits for none that it does not need. What travels one
// hop after another keeps its stream.
dist.mesh @mesh <["context"=3, "data"=2]>
// CHECK: exec.program @ring
// CHECK: exec.permute {"context"} from [0, 1, 2] to [1, 2, 0] %{{.*}} to %[[K1:[0-9]+]] {{.*}}stream 2
// CHECK: exec.permute {{.*}} to %[[V1:[0-9]+]] {{.*}}stream 3
// CHECK: exec.all_reduce {"data"} {{.*}}stream 1
// CHECK: exec.permute {{.*}} %[[K1]] to %[[K2:[0-9]+]] {{.*}}stream 2
// CHECK: exec.permute {{.*}} %[[V1]] to %[[V2:[0-9]+]] {{.*}}stream 3
// CHECK: exec.permute {{.*}} to %[[D1:[0-9]+]] {{.*}}stream 4
// CHECK: exec.permute {"context"} from [0, 1, 2] to [2, 0, 1] {{.*}}stream 5
// ALONE-NOT: stream
// ALONE: exec.program @blocking
func.func @ring(%k: tensor<16xf32> {nn.input = #nn.input<"k", unbatched>}, %v: tensor<16xf32> {nn.input = #nn.input<"v", unbatched>})
    -> (tensor<16xf32> {nn.output = "k"}, tensor<16xf32> {nn.output = "v"}, tensor<16xf32> {nn.output = "d"}, tensor<16xf32> {nn.output = "e"}, tensor<16xf32> {nn.output = "s"}) {
  %k1 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %v1 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %v : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %s = dist.all_reduce {"data"} sum %k : tensor<16xf32>
  %kw = dist.wait %k1 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %vw = dist.wait %v1 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %k2 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %kw : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %v2 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %vw : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %d1 = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %s : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %e1 = dist.permute_start {"context"} from [0, 1, 2] to [2, 0, 1] %s : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %k3 = dist.wait %k2 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %v3 = dist.wait %v2 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %d2 = dist.wait %d1 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %e2 = dist.wait %e1 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  return %k3, %v3, %d2, %e2, %s : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

// A blocking permutation is one of the collectives, in their order.
dist.mesh @mesh <["context"=2]>
// CHECK: exec.program @blocking
// CHECK: exec.permute {{.*}}stream 1
func.func @blocking(%k: tensor<16xf32> {nn.input = #nn.input<"k", unbatched>}) -> (tensor<16xf32> {nn.output = "k"}) {
  %0 = dist.collective_permute {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32>
  return %0 : tensor<16xf32>
}

// -----

// A hop starts where it stands: behind what computes before it, so that it takes no memory earlier.
dist.mesh @mesh <["context"=2]>
// CHECK: exec.program @paced
// CHECK: exec.gemm
// CHECK: %[[M:[0-9]+]] = exec.probe output "m"
// CHECK: exec.wait %[[M]] stream 2
// CHECK-NEXT: exec.permute {{.*}}stream 2
func.func @paced(%a: tensor<4x4xf32> {nn.input = #nn.input<"a", unbatched>}) -> (tensor<4x4xf32> {nn.output = "m"}, tensor<4x4xf32> {nn.output = "k"}) {
  %m = nn.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = dist.permute_start {"context"} from [0, 1] to [1, 0] %a : tensor<4x4xf32> -> !dist.future<tensor<4x4xf32>>
  %k = dist.wait %f : !dist.future<tensor<4x4xf32>> -> tensor<4x4xf32>
  return %m, %k : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Streams are few: of more in flight, those that are left queue behind what is waited for first.
dist.mesh @mesh <["context"=2]>
// CHECK: exec.program @many
// CHECK-COUNT-15: exec.permute
// CHECK: exec.permute {{.*}}stream 17
// CHECK: exec.permute {{.*}}stream 3
// CHECK: exec.permute {{.*}}stream 2
func.func @many(%k: tensor<16xf32> {nn.input = #nn.input<"k", unbatched>}) -> (tensor<16xf32> {nn.output = "k"}) {
  %f0 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f1 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f2 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f3 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f4 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f5 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f6 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f7 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f8 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f9 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f10 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f11 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f12 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f13 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f14 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f15 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f16 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %f17 = dist.permute_start {"context"} from [0, 1] to [1, 0] %k : tensor<16xf32> -> !dist.future<tensor<16xf32>>
  %w1 = dist.wait %f1 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w0 = dist.wait %f0 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w2 = dist.wait %f2 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w3 = dist.wait %f3 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w4 = dist.wait %f4 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w5 = dist.wait %f5 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w6 = dist.wait %f6 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w7 = dist.wait %f7 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w8 = dist.wait %f8 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w9 = dist.wait %f9 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w10 = dist.wait %f10 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w11 = dist.wait %f11 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w12 = dist.wait %f12 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w13 = dist.wait %f13 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w14 = dist.wait %f14 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w15 = dist.wait %f15 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w16 = dist.wait %f16 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  %w17 = dist.wait %f17 : !dist.future<tensor<16xf32>> -> tensor<16xf32>
  return %w17 : tensor<16xf32>
}
