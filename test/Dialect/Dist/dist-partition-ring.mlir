// RUN: shoal-opt %s -split-input-file --dist-partition --canonicalize --cse | FileCheck %s --enable-var-scope

// Keys and values pass by all queries: the next ones start on their way before those at hand are used. Parts are in f32, and rounded once.
dist.mesh @mesh <["context"=3]>
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x1x2x4xbf16> {{.*}}, %[[K:[^:]*]]: tensor<2x4x1x4xbf16> {{.*}}, %[[V:[^:]*]]: tensor<2x4x1x4xbf16>
func.func @forward(%q: tensor<2x12x1x2x4xbf16> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>},
                   %k: tensor<2x12x1x4xbf16> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>},
                   %v: tensor<2x12x1x4xbf16> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>})
    -> (tensor<2x12x1x2x4xbf16> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>}) {
  // CHECK: %[[K1:.*]] = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %[[K]]
  // CHECK: %[[V1:.*]] = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %[[V]]
  // CHECK: %[[O0:.*]], %[[L0:.*]] = nn.attention %[[Q]], %[[K]], %[[V]] positions = %[[AT:.*]], %[[AT]] causal
  // CHECK-SAME: -> tensor<2x4x1x2x4xf32>
  // CHECK: %[[K1V:.*]] = dist.wait %[[K1]]
  // CHECK: %[[V1V:.*]] = dist.wait %[[V1]]
  // CHECK: %[[K2:.*]] = dist.permute_start {{.*}} %[[K1V]]
  // CHECK: %[[V2:.*]] = dist.permute_start {{.*}} %[[V1V]]
  // The rows of the device before: those of device 2 for the first one.
  // CHECK: dist.position_constant [8, 0, 4]
  // CHECK: %[[O1:.*]], %[[L1:.*]] = nn.attention %[[Q]], %[[K1V]], %[[V1V]] positions = %[[AT]], %{{.*}} causal
  // CHECK: %[[M1:.*]], %[[ML1:.*]] = nn.merge_attention %[[O0]], %[[L0]], %[[O1]], %[[L1]]
  // CHECK: %[[K2V:.*]] = dist.wait %[[K2]]
  // CHECK: %[[V2V:.*]] = dist.wait %[[V2]]
  // CHECK-NOT: permute_start
  // CHECK: %[[O2:.*]], %[[L2:.*]] = nn.attention %[[Q]], %[[K2V]], %[[V2V]]
  // CHECK: %[[M2:.*]], %{{.*}} = nn.merge_attention %[[M1]], %[[ML1]], %[[O2]], %[[L2]]
  // CHECK: %[[O:.*]] = nn.cast %[[M2]]
  // CHECK: return %[[O]]
  %o, %lse = nn.attention %q, %k, %v causal scale = 0.5 : (tensor<2x12x1x2x4xbf16>, tensor<2x12x1x4xbf16>, tensor<2x12x1x4xbf16>) -> tensor<2x12x1x2x4xbf16>
  return %o : tensor<2x12x1x2x4xbf16>
}

// -----

// What devices add up for keys that pass by comes along with them, and goes home from the last one; what a device adds to its own keys
// never leaves it.
dist.mesh @mesh <["context"=3]>
// CHECK-LABEL: func.func @backward
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x4x1x1x4xf32> {{.*}}, %[[K:[^:]*]]: tensor<2x4x1x4xf32> {{.*}}, %[[L:[^:]*]]: tensor<2x4x1x1xf32>
func.func @backward(%q: tensor<2x12x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>},
                    %k: tensor<2x12x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>},
                    %l: tensor<2x12x1x1xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>})
    -> (tensor<2x12x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>},
        tensor<2x12x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>}) {
  // CHECK: %[[DQ0:.*]], %[[DK0:.*]], %[[DV0:.*]] = nn.attention_grad %[[Q]], %[[Q]], %[[K]], %[[K]], %[[Q]], %[[L]] scale
  // CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = nn.attention_grad
  // CHECK: %[[SQ1:.*]] = nn.add %[[DQ0]], %[[DQ1]]
  // CHECK: %[[GO:.*]] = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %[[DK1]]
  // CHECK: %[[DQ2:.*]], %[[DK2:.*]], %[[DV2:.*]] = nn.attention_grad
  // CHECK: %[[SQ2:.*]] = nn.add %[[SQ1]], %[[DQ2]]
  // CHECK: %[[CAME:.*]] = dist.wait %[[GO]]
  // CHECK: %[[SK2:.*]] = nn.add %[[CAME]], %[[DK2]]
  // CHECK: %[[HOME:.*]] = dist.permute_start {"context"} from [0, 1, 2] to [1, 2, 0] %[[SK2]]
  // CHECK: %[[OTHERS:.*]] = dist.wait %[[HOME]]
  // CHECK: %[[DK:.*]] = nn.add %[[DK0]], %[[OTHERS]]
  // CHECK: return %[[SQ2]], %[[DK]]
  %dq, %dk, %dv = nn.attention_grad %q, %q, %k, %k, %q, %l scale = 0.5 : (tensor<2x12x1x1x4xf32>, tensor<2x12x1x1x4xf32>, tensor<2x12x1x4xf32>, tensor<2x12x1x4xf32>, tensor<2x12x1x1x4xf32>, tensor<2x12x1x1xf32>) -> (tensor<2x12x1x1x4xf32>, tensor<2x12x1x4xf32>, tensor<2x12x1x4xf32>)
  return %dq, %dk : tensor<2x12x1x1x4xf32>, tensor<2x12x1x4xf32>
}

// -----

// A window reaches one device before and, where nothing is causal, one behind; keys go no further.
dist.mesh @mesh <["context"=5]>
// CHECK-LABEL: func.func @window
// CHECK: dist.permute_start {"context"} from [0, 1, 2, 3, 4] to [1, 2, 3, 4, 0]
// CHECK-NOT: to [4, 0, 1, 2, 3]
// CHECK-COUNT-2: = nn.attention
// CHECK-NOT: = nn.attention
func.func @window(%q: tensor<1x20x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>},
                  %k: tensor<1x20x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>})
    -> (tensor<1x20x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>}) {
  %o, %lse = nn.attention %q, %k, %k causal window = 5 scale = 0.5 : (tensor<1x20x1x1x4xf32>, tensor<1x20x1x4xf32>, tensor<1x20x1x4xf32>) -> tensor<1x20x1x1x4xf32>
  return %o : tensor<1x20x1x1x4xf32>
}

// CHECK-LABEL: func.func @both_ways
// CHECK-DAG: dist.permute_start {"context"} from [0, 1, 2, 3, 4] to [1, 2, 3, 4, 0]
// CHECK-DAG: dist.permute_start {"context"} from [0, 1, 2, 3, 4] to [4, 0, 1, 2, 3]
// CHECK-COUNT-3: = nn.attention
// CHECK-NOT: = nn.attention
func.func @both_ways(%q: tensor<1x20x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>},
                     %k: tensor<1x20x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>})
    -> (tensor<1x20x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>}) {
  %o, %lse = nn.attention %q, %k, %k window = 5 scale = 0.5 : (tensor<1x20x1x1x4xf32>, tensor<1x20x1x4xf32>, tensor<1x20x1x4xf32>) -> tensor<1x20x1x1x4xf32>
  return %o : tensor<1x20x1x1x4xf32>
}

// -----

// Whole keys need no ring: queries know where they are. Rows that pad a shard have no position.
dist.mesh @mesh <["context"=3]>
// CHECK-LABEL: func.func @whole_keys
// CHECK: %[[AT:.*]] = nn.mask %{{.*}} dim = 0 limit = %{{.*}} offset = %{{.*}} fill = -1.0
// CHECK: nn.attention %{{.*}} positions = %[[AT]], %{{.*}} causal
// CHECK-NOT: = nn.attention
func.func @whole_keys(%q: tensor<1x8x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>}, %k: tensor<1x8x1x4xf32>)
    -> (tensor<1x8x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}, {}]>}) {
  %o, %lse = nn.attention %q, %k, %k causal scale = 0.5 : (tensor<1x8x1x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>) -> tensor<1x8x1x1x4xf32>
  return %o : tensor<1x8x1x1x4xf32>
}

// Keys that lie otherwise than the queries are no ring: they are gathered.
// CHECK-LABEL: func.func @sharded_alone
// CHECK: dist.all_gather
// CHECK-NOT: permute_start
func.func @sharded_alone(%q: tensor<1x6x1x1x4xf32>, %k: tensor<1x6x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"context"}, {}, {}]>})
    -> tensor<1x6x1x1x4xf32> {
  %o, %lse = nn.attention %q, %k, %k scale = 0.5 : (tensor<1x6x1x1x4xf32>, tensor<1x6x1x4xf32>, tensor<1x6x1x4xf32>) -> tensor<1x6x1x1x4xf32>
  return %o : tensor<1x6x1x1x4xf32>
}
