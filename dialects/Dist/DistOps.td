#ifndef SHOAL_DIST_OPS
#define SHOAL_DIST_OPS

include "DistAttrs.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "Interfaces/ShardingRuleOpInterface.td"
include "Interfaces/DifferentiableOpInterface.td"
include "Interfaces/KnownAttributes.td"
include "CollectiveOpInterface.td"

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, !listconcat([KnownAttributes], traits)>;

defvar Dist_Tensor = AnyStaticShapeTensor;

// L1.

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "the device mesh";
  let description = [{
    `dist.mesh @mesh <["data"=2, "tensor"=4]>`. Made by users or by `--mesh`; read by everything; stays to the end.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Dist_MeshAttr:$mesh);
  let assemblyFormat = "$sym_name $mesh attr-dict";
  let hasVerifier = 1;
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the same value in another layout";
  let description = [{
    `%1 = dist.reshard %0 <@mesh, [{}, {"tensor"} ]> : tensor<8x8xf32>`. L1 only: made by users and by
    `dist-pack`, consumed by `dist-partition`, which turns it into the cheapest collectives.
  }];
  let arguments = (ins Dist_Tensor:$input, Dist_ShardingAttr:$sharding, OptionalAttr<StrAttr>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input $sharding attr-dict `:` type($result)";
}

def Dist_AccumulateOp : Dist_Op<"accumulate", [SingleBlock, RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "a sum over micro-batches";
  let description = [{
    ```mlir
    %g, %loss = dist.accumulate(%x, %y) microbatches = 4 {
    ^bb0(%xm: tensor<8x64xf32>, %ym: tensor<8xi64>):
      ...
      dist.yield %gm, %lossm : tensor<64x10xf32>, tensor<f32>
    } : (tensor<32x64xf32>, tensor<32xi64>) -> (tensor<64x10xf32>, tensor<f32>)
    ```
    Operands are split into `microbatches` equal parts along dimension 0; the body runs once per part, in order, and
    the results are the sums of what it yields. Other values are captured from above. L1 and L2;
    unrolled by `dist-expand-collectives`, so that nothing below knows it.
  }];
  let arguments = (ins Variadic<Dist_Tensor>:$inputs, I64Attr:$microbatches);
  let results = (outs Variadic<Dist_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dist_YieldOp : Dist_Op<"yield", [Pure, Terminator, ParentOneOf<["AccumulateOp", "GroupOp"]>]> {
  let summary = "results of a region";
  let arguments = (ins Variadic<Dist_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ }]>];
}

// Buckets.

def Dist_PackOp : Dist_Op<"pack", [Pure, SameOperandsElementType, DeclareOpInterfaceMethods<ShardingRuleOpInterface>]> {
  let summary = "element ranges of tensors as one flat bucket";
  let description = [{
    `%b = dist.pack %g1[0:100], %g2[0:50] group 0 at 0 : (tensor<10x10xf32>, tensor<80xf32>) -> tensor<150xf32>`.
    The bucket holds elements [begin, end) of each flattened operand in turn. Buckets of one `group` share storage: the bucket lies at element
    `at` of it, and a tensor that is cut over neighbouring buckets is contiguous, so packing costs no copy. Made by `dist-pack`; consumed by `exec-lower`.
  }];
  let arguments = (ins Variadic<Dist_Tensor>:$inputs, DenseI64ArrayAttr:$begins, DenseI64ArrayAttr:$ends,
                       I64Attr:$group, I64Attr:$at);
  let results = (outs Dist_Tensor:$bucket);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Dist_UnpackOp : Dist_Op<"unpack", [Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>]> {
  let summary = "a tensor made of element ranges of buckets";
  let description = [{
    `%g = dist.unpack %b0[100:150], %b1[0:30] : (tensor<150xf32>, tensor<90xf32>) -> tensor<80xf32>`: the ranges one after
    another, in the result's shape. The inverse of `dist.pack`. Costs no copy when the ranges are neighbours in a group.
  }];
  let arguments = (ins Variadic<Dist_Tensor>:$buckets, DenseI64ArrayAttr:$begins, DenseI64ArrayAttr:$ends);
  let results = (outs Dist_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

// L2: collectives.

// Other devices wait for it, so generic passes may neither erase nor merge it: where control flow depends on the
// position, its twin on another device may be used when it is not.
def Dist_Communication : Resource<"::shoal::dist::Communication">;

class Dist_Collective<string mnemonic, list<Trait> traits = [], list<string> ruleMethods = [],
                      list<Trait> effects = [MemoryEffects<[MemWrite<Dist_Communication>]>]>
    : Dist_Op<mnemonic, !listconcat(traits, effects, [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface, ruleMethods>, CollectiveOpInterface])> {
  code isWholeAlone = [{
    /// A device alone on the axes has the result already.
    bool isIdentityAlone() { return true; }
  }];
  code reduces = [{
    ::std::optional<::shoal::dist::ReduceKindAttrEnum> getReduction() { return getKind(); }
  }];
  let extraClassDeclaration = isWholeAlone;
}

def Dist_AllReduceOp : Dist_Collective<"all_reduce", [AllTypesMatch<["input", "result"]>]> {
  let extraClassDeclaration = isWholeAlone # reduces;
  let summary = "combine over axes, the result on every device";
  let description = "`dist.all_reduce {\"data\"} sum %0 {reason = \"...\"} : tensor<8xf32>` (ncclAllReduce, MPI_Allreduce).";
  let arguments = (ins Dist_AxesAttr:$axes, Dist_ReduceKindAttr:$kind, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes custom<Keyword>($kind) $input attr-dict `:` type($result)";
}

def Dist_AllGatherOp : Dist_Collective<"all_gather"> {
  let summary = "concatenate the shards of a dimension on every device";
  let description = [{
    `dist.all_gather {"tensor"} dim = 1 %0 : tensor<8x2xf32> -> tensor<8x7xf32>` over 4 devices: the shard's size is ceil(S/N)
    of the result's size S; padding at the end is dropped (ncclAllGather, MPI_Allgather).
  }];
  let arguments = (ins Dist_AxesAttr:$axes, I64Attr:$dim, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes `dim` `=` $dim $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_ReduceScatterOp : Dist_Collective<"reduce_scatter"> {
  let extraClassDeclaration = isWholeAlone # reduces;
  let summary = "combine over axes, each device keeps its shard of a dimension";
  let description = "`dist.reduce_scatter {\"data\"} sum dim = 0 %0 : tensor<7x8xf32> -> tensor<2x8xf32>`; padding of the last shards is unspecified.";
  let arguments = (ins Dist_AxesAttr:$axes, Dist_ReduceKindAttr:$kind, I64Attr:$dim, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes custom<Keyword>($kind) `dim` `=` $dim $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_AllToAllOp : Dist_Collective<"all_to_all"> {
  let summary = "move the sharding of a tensor from one dimension to another";
  let description = [{
    `dist.all_to_all {"x"} split = 0 concat = 1 %0 : tensor<8x2xf32> -> tensor<2x8xf32>`: dimension `split` becomes sharded,
    dimension `concat` whole. Sizes round up and padding is dropped as in all_slice and all_gather.
  }];
  let arguments = (ins Dist_AxesAttr:$axes, I64Attr:$split, I64Attr:$concat, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes `split` `=` $split `concat` `=` $concat $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_AllSliceOp : Dist_Collective<"all_slice", [Pure], [], []> {
  let extraClassDeclaration = isWholeAlone # "bool communicates() { return false; }";
  let summary = "each device keeps its shard of a dimension; no communication";
  let description = "`dist.all_slice {\"tensor\"} dim = 0 %0 : tensor<7xf32> -> tensor<2xf32>`; elements past the end are zeros.";
  let arguments = (ins Dist_AxesAttr:$axes, I64Attr:$dim, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes `dim` `=` $dim $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

class Dist_Rooted<string mnemonic, list<Trait> traits = []> : Dist_Collective<mnemonic, traits> {
  let arguments = (ins Dist_AxesAttr:$axes, I64Attr:$root, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes `root` `=` $root $input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}
def Dist_BroadcastOp : Dist_Rooted<"broadcast", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the root's value on every device of the group";
}
def Dist_ScatterOp : Dist_Rooted<"scatter"> {
  let summary = "dimension 0 of the root's value in equal parts, one per device";
}
def Dist_GatherOp : Dist_Rooted<"gather"> {
  let summary = "dimension 0 of all devices' values on the root, zeros elsewhere";
}

class Dist_Permute<string mnemonic, list<Trait> traits = [], list<string> ruleMethods = []>
    : Dist_Collective<mnemonic, traits, ruleMethods> {
  let arguments = (ins Dist_AxesAttr:$axes, DenseI64ArrayAttr:$sources, DenseI64ArrayAttr:$targets, Dist_Tensor:$input, OptionalAttr<Dist_Reason>:$reason);
  let hasVerifier = 1;
  let extraClassDeclaration = ""; // what no pair brings becomes zeros
}
def Dist_CollectivePermuteOp : Dist_Permute<"collective_permute", [AllTypesMatch<["input", "result"]>]> {
  let summary = "each pair's target receives its source's value; zeros where nothing arrives";
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes `from` $sources `to` $targets $input attr-dict `:` type($result)";
}

def Dist_FutureType : TypeDef<Dist_Dialect, "Future", [DeclareTypeInterfaceMethods<ShapedTypeInterface>]> {
  let mnemonic = "future";
  let summary = "a tensor that is still on its way";
  let description = [{
    It has the dimensions of its tensor, and lies as that will: shardings and sharding rules treat it as they do the tensor.
    But no collective takes it, so that it cannot be laid otherwise before `dist.wait`.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}
def Dist_PermuteStartOp : Dist_Permute<"permute_start", [], ["localize"]> {
  let summary = "begin a collective_permute; `dist.wait` yields its value";
  let results = (outs Dist_FutureType:$future);
  let assemblyFormat = "$axes `from` $sources `to` $targets $input attr-dict `:` type($input) `->` qualified(type($future))";
}
def Dist_WaitOp : Dist_Op<"wait", [Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>]> {
  let summary = "the value of a future";
  let arguments = (ins Dist_FutureType:$future);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$future attr-dict `:` qualified(type($future)) `->` type($result)";
  let hasVerifier = 1;
}

// L2: position and point-to-point.

def Dist_AxisIndexOp : Dist_Op<"axis_index", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["localize"]>]> {
  let summary = "this device's position along axes, times a constant";
  let description = [{
    `dist.axis_index {"x", "y"} * 8 : tensor<i64>` (linear, major to minor): offsets of shards; as `index` it steers control flow.
  }];
  let arguments = (ins Dist_AxesAttr:$axes, DefaultValuedAttr<I64Attr, "1">:$scale);
  let results = (outs AnyTypeOf<[0DTensorOf<[I64]>, Index]>:$result);
  let assemblyFormat = "$axes `*` $scale attr-dict `:` type($result)";
}

def Dist_PositionConstantOp : Dist_Op<"position_constant", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a constant of each mesh position";
  let description = [{
    `dist.position_constant [3, 0, 1, 2] : tensor<i64>`: one value per position of the mesh; as `index` a peer. Made by
    `dist-fold-control-flow` for scalars that differ from rank to rank; as a tensor consumed by `dist-expand-collectives`.
  }];
  let arguments = (ins DenseI64ArrayAttr:$values);
  let results = (outs AnyTypeOf<[0DTensorOf<[I64]>, Index]>:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
}

def Dist_SelectOp : Dist_Op<"select", [Pure, SameOperandsAndResultType, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "each mesh position takes one of the operands";
  let description = [{
    `dist.select [0, 1, 1] %a, %b : tensor<4xf32>`: position 0 has `%a`, the others `%b`. What a position does not take need not exist there.
    Made by `dist-fold-control-flow` from results of `scf.if` and `scf.for`; `exec-lower` makes copies of it that some positions run.
  }];
  let arguments = (ins DenseI64ArrayAttr:$choices, Variadic<Dist_Tensor>:$inputs);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$choices $inputs attr-dict `:` type($result)";
}

def Dist_SendOp : Dist_Op<"send", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, CollectiveOpInterface]> {
  let summary = "send to a position on the axes";
  let description = "`dist.send {\"x\"} %0 to %peer : tensor<4xf32>`; matched in order with the receive of the peer. Rendezvous semantics.";
  let arguments = (ins Dist_AxesAttr:$axes, Dist_Tensor:$input, Index:$peer, OptionalAttr<Dist_Reason>:$reason);
  let assemblyFormat = "$axes $input `to` $peer attr-dict `:` type($input)";
}
def Dist_RecvOp : Dist_Op<"recv", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, CollectiveOpInterface]> {
  let summary = "receive from a position on the axes";
  let arguments = (ins Dist_AxesAttr:$axes, Index:$peer, OptionalAttr<Dist_Reason>:$reason);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$axes `from` $peer attr-dict `:` type($result)";
}
def Dist_GroupOp : Dist_Op<"group", [SingleBlock]> {
  let summary = "sends and receives that progress together";
  let description = "`%1 = dist.group { ... dist.yield %0 : tensor<4xf32> } : tensor<4xf32>` (ncclGroupStart/End).";
  let results = (outs Variadic<Dist_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict (`:` type($results)^)?";
  let hasRegionVerifier = 1;
}
def Dist_BarrierOp : Dist_Op<"barrier", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, CollectiveOpInterface]> {
  let summary = "wait for every device of the group";
  let arguments = (ins Dist_AxesAttr:$axes, OptionalAttr<Dist_Reason>:$reason);
  let assemblyFormat = "$axes attr-dict";
}

#endif
