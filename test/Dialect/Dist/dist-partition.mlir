// One device's program: local shapes, the cheapest collectives, masks where a reduction would see padding.
// RUN: shoal-opt %s --split-input-file --dist-partition | FileCheck %s

// Rows split over devices need nothing from each other.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @rows
// CHECK-SAME: %[[A:.*]]: tensor<4x4xf32> {dist.global = #dist.global<0, tensor<8x4xf32>, <@mesh, [{"x"}, {}]>>}
// CHECK-SAME: -> (tensor<4x2xf32> {dist.global = #dist.global<0, tensor<8x2xf32>, <@mesh, [{"x"}, {}]>>})
// CHECK-NEXT: %[[C:.*]] = nn.matmul %[[A]], %{{.*}} {dist.globals = [#dist.global<7, tensor<8x2xf32>, <@mesh, [{"x"}, {}]>>]}
// CHECK-NEXT: return %[[C]]
func.func @rows(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = nn.matmul %a, %b {dist.id = 7 : i64, dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

// A sharded contraction leaves partial sums, which are reduced before a non-linear op and say why.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @contraction
// CHECK: %[[P:.*]] = nn.matmul %{{.*}} : (tensor<8x2xf32>, tensor<2x2xf32>) -> tensor<8x2xf32>
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} {{.*}}sum %[[P]] {reason = #dist.reason<"operand 0 of nn.relu" in "h.3" moves "[{}, {}] sum{\22x\22} -> [{}, {}]" because <"the annotation of {{.*}}">>}
// CHECK-NEXT: nn.relu %[[R]]
func.func @contraction(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                       %b: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.relu %0 {nn.layer = "h.3", dist.shardings = [#dist.sharding<@mesh, [{}, {}]>]} : tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// -----

// Partial sums that are wanted sharded are reduced and scattered at once.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @scattered
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: dist.reduce_scatter {"x"} {{.*}}sum dim = 0 %[[P]] {{.*}} : tensor<8x2xf32> -> tensor<4x2xf32>
func.func @scattered(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                     %b: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

// The bias of a row-parallel layer is added once, after the reduction.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @row_parallel_bias
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} {{.*}}sum %[[P]]
// CHECK-NEXT: nn.add %[[R]], %{{.*}}
func.func @row_parallel_bias(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                             %w: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                             %b: tensor<2xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<8x2xf32> {
  %0 = nn.matmul %a, %w {dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = nn.add %0, %b {dist.shardings = [#dist.sharding<@mesh, [{}, {}]>]} : (tensor<8x2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
  return %1 : tensor<8x2xf32>
}

// -----

// A sum of two partial sums is reduced once.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @sum_of_partials
// CHECK: %[[S:.*]] = nn.add
// CHECK-NEXT: dist.all_reduce {"x"} {{.*}}sum %[[S]] {reason = #dist.reason<"result 0" moves "[{}] sum{\22x\22} -> [{}]" because {{.*}}>}
// CHECK-NOT: dist.all_reduce
// CHECK: return
func.func @sum_of_partials(%a: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>},
                           %b: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<2xf32> {
  %0 = nn.reduce sum %a dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<4x2xf32> -> tensor<2xf32>
  %1 = nn.reduce sum %b dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<4x2xf32> -> tensor<2xf32>
  %2 = nn.add %0, %1 {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

// -----

// Padding of a contraction is masked in both operands: it may hold NaN, which zero times does not hide.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @padded_contraction
// CHECK-SAME: %[[A:.*]]: tensor<8x3xf32>{{.*}}, %[[B:.*]]: tensor<3x2xf32>
// CHECK-DAG: %[[L:.*]] = nn.constant dense<5> : tensor<i64>
// CHECK-DAG: %[[O:.*]] = dist.axis_index {"x"} * 3
// CHECK-DAG: %[[MA:.*]] = nn.mask %[[A]] dim = 1 limit = %{{.*}} offset = %{{.*}} fill = 0.000000e+00
// CHECK-DAG: %[[MB:.*]] = nn.mask %[[B]] dim = 0 limit = %{{.*}} offset = %{{.*}} fill = 0.000000e+00
// CHECK: nn.matmul %[[MA]], %[[MB]]
func.func @padded_contraction(%a: tensor<8x5xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                              %b: tensor<5x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x2xf32> {
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]} : (tensor<8x5xf32>, tensor<5x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

// 3 rows on 8 devices: five of them hold padding only, and no maximum sees it.
dist.mesh @mesh <["x"=8]>
// CHECK-LABEL: @fewer_rows_than_devices
// CHECK-SAME: %[[A:.*]]: tensor<1x2xf32>
// CHECK: %[[M:.*]] = nn.mask %[[A]] dim = 0 limit = %{{.*}} offset = %{{.*}} fill = 0xFFF0000000000000
// CHECK-NEXT: %[[P:.*]] = nn.reduce max %[[M]] dims = [0]
// CHECK-NEXT: dist.all_reduce {"x"} {{.*}}max %[[P]]
func.func @fewer_rows_than_devices(%a: tensor<3x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<2xf32> {
  %0 = nn.reduce max %a dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=max{"x"}>]} : tensor<3x2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// A softmax along a sharded dimension becomes ops that can be sharded there; the dimension is never gathered.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @softmax
// CHECK-NOT: all_gather
// CHECK: nn.reduce max %{{.*}} dims = [1] {keep_dims} : tensor<8x4xf32>
// CHECK: dist.all_reduce {"x"} {{.*}}max
// CHECK: nn.exp
// CHECK: dist.all_reduce {"x"} {{.*}}sum
// CHECK: nn.div %{{.*}} {dist.globals = [#dist.global<4, tensor<8x8xf32>, <@mesh, [{}, {"x"}]>>]}
func.func @softmax(%a: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = nn.softmax %a dim = 1 {dist.id = 4 : i64, dist.shardings = [#dist.sharding<@mesh, [{}, {"x"}]>]} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// A value that two ops need whole is gathered once.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @gathered_once
// CHECK: %[[G:.*]] = dist.all_gather
// CHECK-NOT: dist.all_gather
// CHECK: nn.slice %[[G]] dim = 0 start = 0
// CHECK: nn.slice %[[G]] dim = 0 start = 3
func.func @gathered_once(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>}) -> (tensor<3xf32>, tensor<1xf32>) {
  %0 = nn.slice %a dim = 0 start = 0 {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<4xf32> -> tensor<3xf32>
  %1 = nn.slice %a dim = 0 start = 3 {dist.shardings = [#dist.sharding<@mesh, [{}]>]} : tensor<4xf32> -> tensor<1xf32>
  return %0, %1 : tensor<3xf32>, tensor<1xf32>
}

// -----

// The order of axes in a dimension is layout: shards change places.
dist.mesh @mesh <["x"=2, "y"=3]>
// CHECK-LABEL: @axis_order
// CHECK: dist.collective_permute {"x", "y"} from [0, 1, 2, 3, 4, 5] to [0, 3, 1, 4, 2, 5] %{{.*}} {reason = #dist.reason<"dist.reshard" moves "[{\22x\22, \22y\22}] -> [{\22y\22, \22x\22}]" because {{.*}}>} : tensor<2xf32>
func.func @axis_order(%a: tensor<12xf32> {dist.sharding = #dist.sharding<@mesh, [{"x", "y"}]>})
    -> (tensor<12xf32> {dist.sharding = #dist.sharding<@mesh, [{"y", "x"}]>}) {
  %0 = dist.reshard %a <@mesh, [{"y", "x"}]> : tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----

// Axes of size 1 need no communication.
dist.mesh @mesh <["x"=1]>
// CHECK-LABEL: @one_device
// CHECK-NOT: dist.all
// CHECK: nn.reduce sum
// CHECK-NEXT: return
func.func @one_device(%a: tensor<4x2xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<2xf32> {
  %0 = nn.reduce sum %a dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<4x2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// A scalar that is partial over two axes is reduced at once.
dist.mesh @mesh <["x"=2, "y"=3]>
// CHECK-LABEL: @two_axes
// CHECK: dist.all_reduce {"x", "y"}
// CHECK-NOT: dist.all_reduce
// CHECK: return
func.func @two_axes(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<f32> {
  %0 = nn.reduce sum %a dims = [0, 1] {dist.shardings = [#dist.sharding<@mesh, [], unreduced=sum{"x", "y"}>]} : tensor<4x6xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Sums over micro-batches stay partial through the region, and are reduced once, outside. A device computes
// its part of each micro-batch, so its rows are exchanged first.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @micro_batches
// CHECK: dist.all_to_all {"x"} split = 1 concat = 0 %{{.*}} {reason = #dist.reason<"input 0 of the micro-batches" moves "a shard of rows -> a shard of every micro-batch" because {{.*}}>} : tensor<1x4x4xf32> -> tensor<2x2x4xf32>
// CHECK: %[[A:.*]] = dist.accumulate(%{{.*}}) microbatches = 2
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<2x4xf32>)
// CHECK-NOT: dist.all_reduce
// CHECK: dist.yield
// CHECK: dist.all_reduce {"x"} {{.*}}sum %[[A]]
func.func @micro_batches(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
  %0 = dist.accumulate(%a) microbatches = 2 attributes {dist.arg_shardings = [#dist.sharding<@mesh, [{"x"}, {}]>], dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] {dist.shardings = [#dist.sharding<@mesh, [{}], unreduced=sum{"x"}>]} : tensor<4x4xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A norm over a sharded dimension of 24 elements, 5 to a device: sums of the real elements, divided by 24. Each part that
// computes a result has that result's annotation and number.
dist.mesh @mesh <["x"=5]>
// CHECK-LABEL: @layer_norm
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x5xf32>
// CHECK-DAG: %[[D:.*]] = nn.constant dense<2.400000e+01> : tensor<f32>
// CHECK-DAG: %[[MX:.*]] = nn.mask %[[X]] dim = 1 limit = {{.*}} fill = 0.0
// CHECK: %[[S:.*]] = nn.reduce sum %[[MX]] dims = [1]
// CHECK: nn.div %[[S]], %[[D]]
// CHECK: %[[MEAN:.*]] = dist.all_reduce {"x"} {{.*}}sum
// CHECK: %[[C:.*]] = nn.sub %[[X]], %[[MEAN]]
// CHECK: %[[SQ:.*]] = nn.mul %[[C]], %[[C]]
// CHECK: nn.mask %[[SQ]] dim = 1
// CHECK: dist.all_reduce {"x"} {{.*}}sum
// CHECK: nn.rsqrt
// CHECK-NOT: dist.all_
// CHECK: %[[Y:.*]] = nn.add {{.*}} {dist.globals = [#dist.global<4, tensor<2x24xf32>, <@mesh, [{}, {"x"}]>>]}
// CHECK: %[[RM:.*]] = nn.reshape %[[MEAN]] {dist.globals = [#dist.global<5, tensor<2xf32>, <@mesh, [{}]>>]}
// CHECK: %[[RR:.*]] = nn.reshape {{.*}} {dist.globals = [#dist.global<6, tensor<2xf32>, <@mesh, [{}]>>]}
// CHECK: return %[[Y]], %[[RM]], %[[RR]]
func.func @layer_norm(%x: tensor<2x24xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                      %p: tensor<24xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>})
    -> (tensor<2x24xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}, tensor<2xf32>, tensor<2xf32>) {
  %0:3 = nn.layer_norm %x, %p, %p eps = 1.0e-5 {dist.id = 4 : i64, dist.shardings = [
    #dist.sharding<@mesh, [{}, {"x"}]>, #dist.sharding<@mesh, [{}]>, #dist.sharding<@mesh, [{}]>]} : tensor<2x24xf32>, tensor<24xf32>
  return %0#0, %0#1, %0#2 : tensor<2x24xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// A partial value that an op reads twice is reduced once, before it.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @square
// CHECK: %[[P:.*]] = nn.matmul
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce {"x"} sum %[[P]]
// CHECK-NEXT: %[[S:.*]] = nn.mul %[[R]], %[[R]]
// CHECK-NEXT: return %[[S]]
func.func @square(%a: tensor<4x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>},
                  %b: tensor<6x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  %0 = nn.matmul %a, %b {dist.shardings = [#dist.sharding<@mesh, [{}, {}], unreduced=sum{"x"}>]} : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = nn.mul %0, %0 {dist.shardings = [#dist.sharding<@mesh, [{}, {}]>]} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// In a program that was not propagated, too, a cause is an annotation that there is: of the argument, of the result of the function.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @cut_for_result
// CHECK: dist.all_slice {"x"} dim = 0 %{{.*}} {reason = #dist.reason<"result 0" moves "{{.*}}" because <"the annotation of result 0 at dist-partition.mlir:{{[^>]*}}">>}
// CHECK: dist.all_to_all {"x"} {{.*}} {reason = #dist.reason<"result 1" moves "{{.*}}" because <"the annotation of argument 1 at dist-partition.mlir:{{[^>]*}}">, <"the annotation of result 1 at dist-partition.mlir:{{[^>]*}}">>}
func.func @cut_for_result(%a: tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
                          %b: tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}, tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = nn.relu %a {dist.shardings = [#dist.sharding<@mesh, [{}, {}]>]} : tensor<4x4xf32>
  %1 = nn.relu %b {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A sequence of 12 over 5 devices in zigzag order: each takes its rows from the whole sequence; the last one has none. A
// batch is sharded as it is.
dist.mesh @mesh <["x"=5, "y"=2]>
// CHECK-LABEL: @zigzag
// CHECK-SAME: %[[A:.*]]: tensor<2x12xi64>
// CHECK: %[[O:.*]] = dist.axis_index {"x"} * 3
// CHECK-NEXT: %[[Z:.*]] = nn.zigzag %[[A]] dim = 1 ranks = 5 offset = %[[O]] {{.*}}: tensor<2x12xi64> -> tensor<2x3xi64>
// CHECK: %[[G:.*]] = dist.all_gather {"x"} {{.*}} %[[Z]] {{.*}} -> tensor<2x12xi64>
// CHECK-NEXT: nn.zigzag %[[G]] dim = 1 ranks = 5 inverse {{.*}}: tensor<2x12xi64>
func.func @zigzag(%a: tensor<4x12xi64> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<4x12xi64> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = nn.zigzag %a dim = 1 ranks = 5 {dist.shardings = [#dist.sharding<@mesh, [{"y"}, {"x"}]>]} : tensor<4x12xi64>
  %1 = nn.zigzag %0 dim = 1 ranks = 5 inverse {dist.shardings = [#dist.sharding<@mesh, [{"y"}, {}]>]} : tensor<4x12xi64>
  return %1 : tensor<4x12xi64>
}

// -----

// A sequence of 12 over 3 devices is 6 chunks of 2: 0 5, 1 4, 2 3. None is gathered: even chunks go to where they belong,
// and odd ones, of the stored order to the original one and back; shards of odd devices begin with the odd chunk.
dist.mesh @mesh <["x"=3]>
// CHECK-LABEL: @zigzag_chunks
// CHECK-SAME: %[[A:.*]]: tensor<4x5xf32>
// CHECK-NOT: dist.all_gather
// CHECK: %[[E:.*]] = dist.position_constant [0, 2, 0] : tensor<i64>
// CHECK-NEXT: %[[EVEN:.*]] = nn.dynamic_slice %[[A]] dim = 0 start = %[[E]] {{.*}} -> tensor<2x5xf32>
// CHECK-NEXT: %[[E0:.*]] = dist.collective_permute {"x"} from [0, 1, 2] to [0, 2, 1] %[[EVEN]]
// CHECK-NEXT: %[[O:.*]] = dist.position_constant [2, 0, 2] : tensor<i64>
// CHECK-NEXT: %[[ODD:.*]] = nn.dynamic_slice %[[A]] dim = 0 start = %[[O]] {{.*}} -> tensor<2x5xf32>
// CHECK-NEXT: %[[O0:.*]] = dist.collective_permute {"x"} from [0, 1, 2] to [2, 0, 1] %[[ODD]]
// CHECK-NEXT: %[[ORIGINAL:.*]] = nn.concat %[[E0]], %[[O0]] dim = 0 {{.*}} -> tensor<4x5xf32>
// CHECK-NEXT: %[[T:.*]] = nn.tanh %[[ORIGINAL]]
// CHECK-NEXT: %[[FIRST:.*]] = nn.slice %[[T]] dim = 0 start = 0
// CHECK-NEXT: %[[E1:.*]] = dist.collective_permute {"x"} from [0, 1, 2] to [0, 2, 1] %[[FIRST]]
// CHECK-NEXT: %[[SECOND:.*]] = nn.slice %[[T]] dim = 0 start = 2
// CHECK-NEXT: %[[O1:.*]] = dist.collective_permute {"x"} from [0, 1, 2] to [1, 2, 0] %[[SECOND]]
// CHECK-NEXT: %[[BOTH:.*]] = nn.concat %[[E1]], %[[O1]], %[[E1]] dim = 0 {{.*}} -> tensor<6x5xf32>
// CHECK-NEXT: %[[S:.*]] = dist.position_constant [0, 2, 0] : tensor<i64>
// CHECK-NEXT: %[[STORED:.*]] = nn.dynamic_slice %[[BOTH]] dim = 0 start = %[[S]] {{.*}} -> tensor<4x5xf32>
// CHECK-NEXT: return %[[STORED]]
func.func @zigzag_chunks(%a: tensor<12x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<12x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = nn.zigzag %a dim = 0 ranks = 3 inverse {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : tensor<12x5xf32>
  %1 = nn.tanh %0 : tensor<12x5xf32>
  %2 = nn.zigzag %1 dim = 0 ranks = 3 {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : tensor<12x5xf32>
  return %2 : tensor<12x5xf32>
}

// -----

// Other devices than those of the order: the rows are gathered.
dist.mesh @mesh <["x"=2]>
// CHECK-LABEL: @zigzag_of_others
// CHECK-NEXT: dist.all_gather {"x"}
// CHECK-NOT: dist.collective_permute
func.func @zigzag_of_others(%a: tensor<12x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<12x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = nn.zigzag %a dim = 0 ranks = 3 inverse {dist.shardings = [#dist.sharding<@mesh, [{"x"}, {}]>]} : tensor<12x5xf32>
  return %0 : tensor<12x5xf32>
}

// -----

// One value as keys and values passes by once.
dist.mesh @mesh <["x"=3]>
// CHECK-LABEL: @attention_of_one_value
// CHECK: %[[ONE:.*]] = dist.permute_start {"x"} from [0, 1, 2] to [1, 2, 0] %[[K:[a-z0-9]+]] {{.*}}keys and values of nn.attention
// CHECK-NEXT: nn.attention %{{.*}}, %[[K]], %[[K]]
// CHECK-NEXT: %[[NEXT:.*]] = dist.wait %[[ONE]]
// CHECK-NEXT: %[[TWO:.*]] = dist.permute_start {"x"} from [0, 1, 2] to [1, 2, 0] %[[NEXT]]
// CHECK-NEXT: nn.attention %{{.*}}, %[[NEXT]], %[[NEXT]]
// CHECK-NOT: dist.permute_start
func.func @attention_of_one_value(%q: tensor<1x6x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}, {}]>},
                                  %k: tensor<1x6x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}]>})
    -> (tensor<1x6x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}, {}]>}) {
  %o, %lse = nn.attention %q, %k, %k scale = 0.5 : (tensor<1x6x1x1x4xf32>, tensor<1x6x1x4xf32>, tensor<1x6x1x4xf32>) -> tensor<1x6x1x1x4xf32>
  return %o : tensor<1x6x1x1x4xf32>
}

// -----

// Positions are whole on every device, which takes those of its rows, and -1 for rows past the end; the offset is that of
// the batch alone. Two ops of one shard share them.
dist.mesh @mesh <["x"=3, "y"=2]>
// CHECK-LABEL: @dropout_positions
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<7xi64>
// CHECK: %[[ABSENT:.*]] = nn.constant dense<-1> : tensor<3xi64>
// CHECK-NEXT: %[[ALL:.*]] = nn.concat %[[P]], %[[ABSENT]] dim = 0 : (tensor<7xi64>, tensor<3xi64>) -> tensor<10xi64>
// CHECK-NEXT: %[[MINE:.*]] = nn.dynamic_slice %[[ALL]] dim = 0 start = %{{.*}} : tensor<10xi64> -> tensor<3xi64>
// CHECK: %[[O:.*]] = nn.mul
// CHECK: nn.dropout %{{.*}} offset = %[[O]] global = [4, 7, 6] positions = %[[MINE]] dim = 1 : tensor<2x3x6xf32>, tensor<3xi64>
func.func @dropout_positions(%a: tensor<4x7x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {"x"}, {}]>}, %p: tensor<7xi64>, %s: tensor<i64>)
    -> (tensor<4x7x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"y"}, {"x"}, {}]>}) {
  %0 = nn.dropout %a rate = 0.5 id = 0 seed = %s step = %s positions = %p dim = 1 {dist.shardings = [#dist.sharding<@mesh, [{"y"}, {"x"}, {}]>]} : tensor<4x7x6xf32>, tensor<7xi64>
  return %0 : tensor<4x7x6xf32>
}

// -----

// Parts of attention are merged where they lie: weights of rows serve every shard of them.
dist.mesh @mesh <["x"=5, "y"=2]>
// CHECK-LABEL: @merge
// CHECK-NOT: dist.all_gather
// CHECK: nn.merge_attention %{{.*}} : tensor<2x2x1x1x2xf32>
func.func @merge(%o: tensor<2x7x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}, {"y"}]>},
                 %l: tensor<2x7x1x1xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}]>})
    -> (tensor<2x7x1x1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}, {"y"}]>},
        tensor<2x7x1x1xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"x"}, {}, {}]>}) {
  %0:2 = nn.merge_attention %o, %l, %o, %l {dist.shardings = [#dist.sharding<@mesh, [{}, {"x"}, {}, {}, {"y"}]>, #dist.sharding<@mesh, [{}, {"x"}, {}, {}]>]} : tensor<2x7x1x1x4xf32>
  return %0#0, %0#1 : tensor<2x7x1x1x4xf32>, tensor<2x7x1x1xf32>
}
