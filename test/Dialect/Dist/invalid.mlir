// RUN: shoal-opt %s -split-input-file -verify-diagnostics

//===-- meshes -----------------------------------------------------------------===//

// expected-error @+1 {{axis size must be at least 1, got: 0}}
dist.mesh @mesh <["x"=0]>

// -----

// expected-error @+1 {{axis "x" is named twice}}
dist.mesh @mesh <["x"=2, "x"=2]>

// -----

// expected-error @+1 {{axis name must be valid UTF-8, got: "\FF"}}
dist.mesh @mesh <["\FF"=2]>

// -----

// expected-error @+1 {{axis name must hold no control characters, got: "a\0A"}}
dist.mesh @mesh <["a\n"=2]>

// -----

// expected-error @+1 {{axis name must not be empty}}
dist.mesh @mesh <[""=2]>

// -----

// expected-error @+1 {{mesh must have at most 1000000 devices; the product of its axis sizes is larger}}
dist.mesh @mesh <["x"=4294967296, "y"=4294967296]>

// -----

// expected-error @+1 {{device_ids must name each of the 4 devices once, got: 3 ids}}
dist.mesh @mesh <["x"=4], device_ids=[0, 1, 2]>

// -----

// expected-error @+1 {{device_ids must be a permutation of 0..3, got: 1 twice}}
dist.mesh @mesh <["x"=4], device_ids=[0, 1, 1, 3]>

// -----

// expected-error @+1 {{device_ids must be a permutation of 0..1, got: 2}}
dist.mesh @mesh <["x"=2], device_ids=[0, 2]>

// -----

// expected-note @+1 {{the first mesh is here}}
dist.mesh @a <["x"=2]>
// expected-error @+1 {{is the second mesh of the module; exactly one may be}}
dist.mesh @b <["x"=2]>

// -----

func.func @f() {
  // expected-error @+1 {{symbol's parent must have the SymbolTable trait}}
  dist.mesh @mesh <["x"=2]>
  return
}

// -----

//===-- shardings ---------------------------------------------------------------===//

dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{axis "x" is used twice}}
func.func private @f(tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {"x"}]>})

// -----

dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{axis "x" is unreduced and also shards a dimension}}
func.func private @f(tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}], unreduced=sum{"x"}>})

// -----

dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{axis "y" is used twice}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=sum{"y", "y"}>})

// -----

dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{argument 0: sharding names unknown axis "z"; the mesh is #dist.mesh<["x"=2, "y"=2]>}}
func.func private @f(tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"z"}, {}]>})

// -----

dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{sharding names unknown axis "z"}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=sum{"z"}>})

// -----

dist.mesh @mesh <["x"=2, "y"=2]>
// expected-error @+1 {{sharding has 1 dimensions, its value has rank 2: 'tensor<4x4xf32>'}}
func.func private @f(tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}]>})

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{'func.func' op result 0: sharding has 2 dimensions, its value has rank 1}}
func.func private @f() -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}, {}]>})

// -----

// An error about an argument names it, at its own place.
dist.mesh @mesh <["x"=2]>
func.func @f(%a: tensor<4xf32> {nn.input = "a"},
    // expected-error @+1 {{'func.func' op argument 1 "block.w": sharding names unknown axis "tp"; the mesh is #dist.mesh<["x"=2]>}}
    %w: tensor<4xf32> {nn.param = #nn.param<"block.w", init = ones>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument 0: names mesh @mesh, but the module has no dist.mesh}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})

// -----

// expected-note @+1 {{the mesh is here}}
dist.mesh @other <["x"=2]>
// expected-error @+1 {{names mesh @mesh, but the module's mesh is @other}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{'?' must be the last in a dimension}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{?, "x"}]>})

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{priority of a dimension must be p0, p1, ..., got: q1}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"x"}q1]>})

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{unreduced kind must be sum, max or min, got: mean}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=mean{"x"}>})

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{unreduced must name at least one axis}}
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], unreduced=max{}>})

// -----

dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{argument 0: expects #dist.sharding, got: 1 : i64}}
func.func private @f(tensor<4xf32> {dist.sharding = 1})

// -----

// expected-error @+1 {{argument 0: has an argument attribute that the dist dialect does not know: "dist.shard"}}
func.func private @f(tensor<4xf32> {dist.shard = 1})

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{"dist.shardings" must be an array of 1 shardings}}
  %0 = nn.relu %x {dist.shardings = []} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{dist.sharding belongs on arguments and results of functions; ops have dist.shardings}}
  %0 = nn.relu %x {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{dist.id must be an i64 of at least 0, got: -1 : i64}}
  %0 = nn.relu %x {dist.id = -1} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{sharding has 1 dimensions, its value has rank 2}}
  %0 = nn.relu %x {dist.globals = [#dist.global<0, tensor<4x4xf32>, <@mesh, [{}]>>]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{sharding names unknown axis "y"}}
  %0 = dist.reshard %x <@mesh, [{"y"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

//===-- collectives ---------------------------------------------------------------===//

// expected-note @+1 {{the mesh is here}}
dist.mesh @mesh <["x"=2, "y"=3]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{names unknown axis "z"; the mesh is #dist.mesh<["x"=2, "y"=3]>}}
  %0 = dist.all_reduce {"z"} sum %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{names axes, but the module has no dist.mesh}}
  %0 = dist.all_reduce {"x"} sum %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{must name at least one axis}}
  %0 = dist.all_reduce {} sum %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{axis "x" is used twice}}
  %0 = dist.all_reduce {"x", "x"} sum %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<2xf32>) -> tensor<9xf32> {
  // expected-error @+1 {{shard of dimension 0 must be ceil(9 / 4) = 3, got: 2}}
  %0 = dist.all_gather {"x"} dim = 0 %x : tensor<2xf32> -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<2xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{dimension must be in [0, 1), got: 1}}
  %0 = dist.all_gather {"x"} dim = 1 %x : tensor<2xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<2xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{dimension must be in [0, 1), got: -1}}
  %0 = dist.all_gather {"x"} dim = -1 %x : tensor<2xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<7x2xf32>) -> tensor<1x2xf32> {
  // expected-error @+1 {{shard of dimension 0 must be ceil(7 / 4) = 2, got: 1}}
  %0 = dist.reduce_scatter {"x"} sum dim = 0 %x : tensor<7x2xf32> -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<8x2xf32>) -> tensor<2x1xf32> {
  // expected-error @+1 {{must keep the size of dimension 1: 2, got: 1}}
  %0 = dist.reduce_scatter {"x"} sum dim = 0 %x : tensor<8x2xf32> -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<8xf32>) -> tensor<2x1xf32> {
  // expected-error @+1 {{must keep the rank 1, got: 2}}
  %0 = dist.all_slice {"x"} dim = 0 %x : tensor<8xf32> -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// -----

dist.mesh @mesh <["x"=4]>
func.func @f(%x: tensor<8xf32>) -> tensor<2xi32> {
  // expected-error @+1 {{must keep the element type 'f32', got: 'i32'}}
  %0 = dist.all_slice {"x"} dim = 0 %x : tensor<8xf32> -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  // expected-error @+1 {{must split and concatenate different dimensions, got: 0 for both}}
  %0 = dist.all_to_all {"x"} split = 0 concat = 0 %x : tensor<8x2xf32> -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<8x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{shard of dimension 1 must be ceil(2 / 2) = 1, got: 2}}
  %0 = dist.all_to_all {"x"} split = 0 concat = 1 %x : tensor<8x2xf32> -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{root must be in [0, 2), got: 2}}
  %0 = dist.broadcast {"x"} root = 2 %x : tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<7xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{must have 2 equal parts along dimension 0: 7 rows, parts of 4}}
  %0 = dist.scatter {"x"} root = 0 %x : tensor<7xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{dimension must be in [0, 0), got: 0}}
  %0 = dist.gather {"x"} root = 0 %x : tensor<f32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{position must be in [0, 2), got: 2}}
  %0 = dist.collective_permute {"x"} from [0] to [2] %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{target 1 is named twice}}
  %0 = dist.collective_permute {"x"} from [0, 1] to [1, 1] %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{must have as many sources as targets, got: 2 and 1}}
  %0 = dist.collective_permute {"x"} from [0, 1] to [1] %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: !dist.future<tensor<4xf32>>) -> tensor<8xf32> {
  // expected-error @+1 {{must return what the future holds: 'tensor<4xf32>', got: 'tensor<8xf32>'}}
  %0 = dist.wait %x : !dist.future<tensor<4xf32>> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{holds only sends, receives and pure ops, got: dist.barrier}}
  %0 = dist.group {
    dist.barrier {"x"}
    dist.yield %x : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

//===-- accumulate and buckets -------------------------------------------------------===//

func.func @f(%x: tensor<9x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{rows of input #0 must be a multiple of microbatches: 9 rows, 2 microbatches}}
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<4x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<4x4xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<9x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{body argument #0 must be one micro-batch 'tensor<4x4xf32>', got: 'tensor<8x4xf32>'}}
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<8x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<8x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{microbatches must be at least 1, got: 0}}
  %0 = dist.accumulate(%x) microbatches = 0 {
  ^bb0(%m: tensor<8x4xf32>):
    %1 = nn.reduce sum %m dims = [0] : tensor<8x4xf32> -> tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  } : (tensor<8x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{input #0 is a scalar and cannot be split; capture it}}
  %0 = dist.accumulate(%x) microbatches = 1 {
  ^bb0(%m: tensor<f32>):
    dist.yield %m : tensor<f32>
  } : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{must return the types that its body yields: ('tensor<4xf32>'), got: ('tensor<8xf32>')}}
  %0 = dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<4xf32>):
    dist.yield %m : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects a non-empty block}}
  dist.accumulate(%x) microbatches = 2 {
  ^bb0(%m: tensor<4xf32>):
  } : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{range #0 must lie in the 8 elements of its operand, got: [5:9]}}
  %0 = dist.pack %x[5:9] group 0 at 0 : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{ranges hold 4 elements, the result 5}}
  %0 = dist.pack %x[0:4] group 0 at 0 : (tensor<8xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<2x2xf32> {
  // expected-error @+1 {{bucket must have rank 1, got: 'tensor<2x2xf32>'}}
  %0 = dist.pack %x[0:4] group 0 at 0 : (tensor<8xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Positions and numbers of groups are added to.
func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{must end below element 2^63 of its group, got: 4 elements at 9223372036854775804}}
  %0 = dist.pack %x[0:4] group 0 at 9223372036854775804 : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{group must be below 2^32, got: 4294967296}}
  %0 = dist.pack %x[0:4] group 4294967296 at 0 : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// So are the elements of ranges, which would be 4 modulo 2^64.
func.func @f(%x: tensor<4611686018427387904xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{ranges hold 18446744073709551615 elements, the result 4}}
  %0 = dist.pack %x[0:4611686018427387904], %x[0:4611686018427387904], %x[0:4611686018427387904], %x[0:4611686018427387904], %x[0:4] group 0 at 0
      : (tensor<4611686018427387904xf32>, tensor<4611686018427387904xf32>, tensor<4611686018427387904xf32>, tensor<4611686018427387904xf32>, tensor<4611686018427387904xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{buckets must have rank 1, got: 'tensor<2x4xf32>'}}
  %0 = dist.unpack %x[0:4] : (tensor<2x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs one range per operand: 1, got: 2 begins and 1 ends}}
  %0 = "dist.unpack"(%x) {begins = array<i64: 0, 1>, ends = array<i64: 4>} : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

//===-- what no parser writes ---------------------------------------------------------===//

func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{microbatches must be at least 1, got: -2}}
  %0 = dist.accumulate(%x) microbatches = -2 {
  ^bb0(%m: tensor<4xf32>):
    dist.yield %m : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{dist.arg_shardings belongs on dist.accumulate}}
"dist.accumulate"() {microbatches = 1 : i64, dist.arg_shardings = []} : () -> ()

// -----

// Annotations that name a mesh without its attribute say nothing of their own.
func.func private @f(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})
// expected-error @+1 {{requires attribute 'mesh'}}
"dist.mesh"() {sym_name = "mesh"} : () -> ()

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{requires attribute 'axes'}}
  %0 = "dist.all_reduce"(%x) {} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A piece has the type of its place in the whole.
dist.mesh @mesh <["x"=2]>
// expected-error @+1 {{"dist.global" is a piece of type 'tensor<f32>' of 'tensor<f32>', its value has 'tensor<4xf32>'}}
func.func @f(%a: tensor<4xf32> {nn.input = "a", dist.global = #dist.global<0, tensor<f32>, #dist.sharding<@mesh, []>>}) {
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%a: tensor<4xf32>) {
  // expected-error @+1 {{"dist.globals" is a piece of type 'tensor<2xf32>' of 'tensor<4xf32>', its value has 'tensor<4xf32>'}}
  %0 = nn.neg %a {dist.globals = [#dist.global<0, tensor<4xf32>, #dist.sharding<@mesh, [{"x"}]>>]} : tensor<4xf32>
  return
}

// -----

// What is no tensor is the same for all positions, or said for each.
dist.mesh @mesh <["x"=2]>
func.func @at() -> index {
  // expected-error @+1 {{dist.at belongs on communication and on what computes tensors, in a module with a dist.mesh}}
  %0 = dist.axis_index {"x"} * 1 {dist.at = array<i64: 0>} : index
  return %0 : index
}

// -----

// An id that 64 bits with a sign do not hold would print as another.
// expected-error @+1 {{id must be from 0 to 2^63 - 1}}
module attributes {a = #dist.global<10000000000000000000, tensor<4xf32>, #dist.sharding<@mesh, [{}]>>} {}

// -----

// expected-error @+1 {{id must be from 0 to 2^63 - 1, got: -1}}
module attributes {a = #dist.global<-1, tensor<4xf32>, #dist.sharding<@mesh, [{}]>>} {}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.refetch is a unit attribute of dist.reshard and collectives, got: 1}}
  %0 = dist.all_gather {"x"} dim = 0 %x {dist.refetch = 1 : i64} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.refetch is a unit attribute of dist.reshard and collectives, got: unit}}
  %0 = nn.neg %x {dist.refetch} : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.ring is an i64 of at least 0 on dist.permute_start, got: -1}}
  %0 = dist.permute_start {"x"} from [0, 1] to [1, 0] %x {dist.ring = -1 : i64} : tensor<4xf32> -> !dist.future<tensor<4xf32>>
  %1 = dist.wait %0 : !dist.future<tensor<4xf32>> -> tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{dist.ring is an i64 of at least 0 on dist.permute_start, got: 0}}
  %0 = dist.all_gather {"x"} dim = 0 %x {dist.ring = 0 : i64} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// What no op and no dialect knows is no attribute.
dist.mesh @mesh <["x"=2]>
func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{unknown attribute 'raeson', it knows: axes, kind, reason}}
  %0 = dist.all_reduce {"x"} sum %x {raeson = "none"} : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{must be a dictionary of #dist.cause by mesh axis, got: 1}}
func.func @f(%x: tensor<4xf32> {dist.why = 1 : i64}) {
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{must be a dictionary of #dist.cause by mesh axis, got: {x = "me"}}}
  %0 = nn.neg %x {dist.why = {x = "me"}} : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'reason' failed to satisfy constraint: a reason: a string, or #dist.reason}}
  %0 = dist.all_gather {"x"} dim = 0 %x {reason = 1 : i64} : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

// A split axis is no axis any more.
dist.mesh @mesh <["tensor.0"=2, "tensor.1"=2]>
// expected-error @+1 {{dist.flat names unknown axis "tensor"; the mesh is #dist.mesh<["tensor.0"=2, "tensor.1"=2]>}}
func.func private @split_flat(tensor<4xf32> {nn.param = #nn.param<"w", init = zeros>, dist.flat = #dist.flat<{"tensor"}>})

// -----

// A reason that cannot be read is one error.
func.func @cause(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected string}}
  %0 = nn.relu %x {dist.why = {x = #dist.cause<w1>}} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @strategy(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected '>'}}
  %0 = nn.relu %x {dist.why = {x = #dist.cause<"w1" of "h.0">}} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @reason(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected string}}
  %0 = dist.all_reduce {"x"} sum %x {reason = #dist.reason<"me" moves 3>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @causes(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{expected string}}
  %0 = dist.all_reduce {"x"} sum %x {reason = #dist.reason<"me" because <"you">, <3>>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <["x"=2]>
func.func @async(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{dist.async is a unit attribute of dist.send and dist.recv, got: unit}}
  %0 = dist.all_reduce {"x"} sum %arg0 {dist.async} : tensor<2xf32>
  return %0 : tensor<2xf32>
}
