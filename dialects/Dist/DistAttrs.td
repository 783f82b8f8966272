#ifndef SHOAL_DIST_ATTRS
#define SHOAL_DIST_ATTRS

include "DistDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Dist_ReduceKind : I32EnumAttr<"ReduceKindAttrEnum", "how partial values combine", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::shoal::dist";
  let genSpecializedAttr = 0;
}
def Dist_ReduceKindAttr : EnumAttr<Dist_Dialect, Dist_ReduceKind, "reduce_kind">;

class Dist_Attr<string name, string mn, list<Trait> traits = []>
    : AttrDef<Dist_Dialect, name, traits> { let mnemonic = mn; }

def Dist_AxesAttr : Dist_Attr<"Axes", "axes"> {
  let summary = "mesh axes, major to minor";
  let description = "Prints as `{\"x\", \"y\"}`. The order is layout: `{\"x\",\"y\"}` is not `{\"y\",\"x\"}`.";
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool contains(::mlir::StringAttr axis) const { return ::llvm::is_contained(getAxes(), axis); }
    bool empty() const { return getAxes().empty(); }
  }];
}

def Dist_MeshAxisAttr : Dist_Attr<"MeshAxis", "mesh_axis"> {
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size);
  let hasCustomAssemblyFormat = 1;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "named axes and their sizes";
  let description = [{
    `<["data"=2, "tensor"=4]>`; ranks are row-major over the axes, the last fastest.
    `<["data"=2, "tensor"=2], device_ids=[0, 2, 1, 3]>` maps each position to a rank.
  }];
  let parameters = (ins ArrayRefParameter<"::shoal::dist::MeshAxisAttr">:$axes,
                        ArrayRefParameter<"int64_t">:$deviceIds);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Size of an axis, nullopt when unknown.
    ::std::optional<int64_t> getAxisSize(::mlir::StringAttr axis) const;
    /// Product of the sizes of `axes` (all must exist).
    int64_t getSize(::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// Number of devices.
    int64_t getNumDevices() const;
    /// Index of the axis in the mesh (must exist).
    unsigned getAxisIndex(::mlir::StringAttr axis) const;
    /// Coordinates (one per mesh axis) of a mesh position, row-major.
    ::llvm::SmallVector<int64_t> getCoordinates(int64_t position) const;
    /// Linear index of a position along `axes`, major to minor.
    int64_t getIndexAlong(int64_t position, ::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// The position whose linear index along `axes` is `index`, all else as at `position`.
    int64_t getPositionAlong(int64_t position, ::llvm::ArrayRef<::mlir::StringAttr> axes, int64_t index) const;
  }];
}

def Dist_DimShardingAttr : Dist_Attr<"DimSharding", "dim"> {
  let summary = "the axes that shard one dimension";
  let description = "`{\"x\", \"y\"}` closed, `{\"x\", ?}` open to more axes, `{\"x\"}p1` with a priority (0, the first, when none is written).";
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, "bool":$isClosed,
                        "int64_t":$priority);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "how a tensor lies on the mesh";
  let description =
    "`#dist.sharding<@mesh, [{\"data\"}p0, {\"tensor\", ?}], unreduced=sum{\"pipe\"}>`. A dimension of size S "
    "over n devices has shards of ceil(S/n) elements; the last ones may hold padding, whose "
    "contents are unspecified. `unreduced`: every device along those axes holds a partial value.";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$mesh,
                        ArrayRefParameter<"::shoal::dist::DimShardingAttr">:$dims,
                        "::shoal::dist::ReduceKindAttrEnum":$unreducedKind,
                        ArrayRefParameter<"::mlir::StringAttr">:$unreducedAxes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Fully replicated and closed (or open) sharding of the given rank.
    static ShardingAttr getReplicated(::mlir::FlatSymbolRefAttr mesh, int64_t rank, bool closed = true);
    /// All dimension axes without open markers or priorities equal, and the unreduced part equal.
    bool sameLayout(ShardingAttr other) const;
    bool isReplicated() const;
    ::llvm::ArrayRef<::mlir::StringAttr> getDimAxes(unsigned dim) const { return getDims()[dim].getAxes(); }
    ShardingAttr withDims(::llvm::ArrayRef<DimShardingAttr> dims) const;
    ShardingAttr withUnreduced(ReduceKindAttrEnum kind, ::llvm::ArrayRef<::mlir::StringAttr> axes) const;
    /// Axes used by a dimension or unreduced.
    bool uses(::mlir::StringAttr axis) const;
    /// Type of one device's shard: ceil(size / product of axis sizes) per dimension.
    ::mlir::RankedTensorType getLocalType(::mlir::RankedTensorType global, MeshAttr mesh) const;
  }];
}

def Dist_FlatAttr : Dist_Attr<"Flat", "flat"> {
  let summary = "the elements of a tensor lie sharded in a bucket";
  let description = [{
    `#dist.flat<{"data"}>` as `dist.flat` on an argument or result: its flattened elements lie sharded over these axes, in a bucket with those of
    other tensors, so that sizes need not divide. Written by `dist-zero` or by hand at L1, consumed by `dist-pack`, in one run: the axes are all
    batch axes, or none is. `#dist.flat<{"data"}, per_use>`: they
    are never kept whole. A parameter is put together for each use and dropped behind it (without `per_use` once a step); a gradient is
    reduced to shards in each micro-batch (without, once a step). A bucket of parameters keeps the attribute, by which `dist-verify-local` checks that.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, "bool":$perUse);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Dist_CauseAttr : Dist_Attr<"Cause", "cause"> {
  let summary = "which annotation brought a mesh axis";
  let description = [{
    `#dist.cause<"the heads of nn.attention" in "h.0" by "--tensor-parallel">`: what a strategy shards; without a strategy an annotation in the
    file, `#dist.cause<"the annotation of \22w1\22 at model.mlir:7:5">`. Values carry one per axis in `dist.why`,
    or several in an array where partial values of several annotations were added; collectives carry them in their reason.
  }];
  let parameters = (ins "::mlir::StringAttr":$what, OptionalParameter<"::mlir::StringAttr">:$layer,
                        OptionalParameter<"::mlir::StringAttr">:$strategy);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// "--tensor-parallel shards the heads of nn.attention in h.0"; without the layer when that is `known`.
    ::std::string getText(::mlir::StringAttr known = {}) const;
  }];
}

def Dist_ReasonAttr : Dist_Attr<"Reason", "reason"> {
  let summary = "why a collective exists";
  let description = [{
    `#dist.reason<"operand 0 of nn.matmul" in "h.3" moves "[{}, {\22x\22} ] -> [{}, {} ]" because <"the annotation of \22w\22 at f.mlir:7:5">>`: who asks
    for it, how the value lies before and afterwards, and the annotations that brought the axes which it moves. Made by
    `dist-partition`. A program written by hand says its reason in its own words, as a string.
  }];
  let parameters = (ins "::mlir::StringAttr":$asker, OptionalParameter<"::mlir::StringAttr">:$layer,
                        OptionalParameter<"::mlir::StringAttr">:$change,
                        OptionalArrayRefParameter<"::shoal::dist::CauseAttr">:$causes);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// As one line: asker, change; causes.
    ::std::string getText() const;
    /// The asker and its layer. `namesLayer` off: as in any other layer.
    ::std::string getAskerText(bool namesLayer = true) const;
    /// The causes one after another; the layer `known` is not named.
    ::std::string getCauseText(::mlir::StringAttr known = {}) const;
  }];
}
def Dist_Reason : AnyAttrOf<[StrAttr, Dist_ReasonAttr], "a reason: a string, or #dist.reason">;

def Dist_GlobalAttr : Dist_Attr<"Global", "global"> {
  let summary = "which global value a local one is a piece of";
  let description = [{
    `#dist.global<12, tensor<8x8xf32>, #dist.sharding<...>>`: the value of L1 with number 12: the first result of an op has its
    `dist.id`, the others the numbers behind it. Written by the
    partitioner, read by `dist-verify-plan` to compare both programs, and by reports.
  }];
  let genVerifyDecl = 1;
  let parameters = (ins "int64_t":$id, "::mlir::RankedTensorType":$type, "::shoal::dist::ShardingAttr":$sharding);
  let hasCustomAssemblyFormat = 1;
}

def Dist_MemberAttr : Dist_Attr<"Member", "member"> {
  let summary = "what lies in a bucket of one tensor";
  let description = [{
    `#dist.member<#nn.param<"w1", init = zeros>, tensor<4x3xf32>>`: what it is (the `nn` attribute that an argument of its own would have, or the name
    of a gradient), and its type as it lies there, flattened row-major. `tensor<4x3xf32>[0:7]`: of those elements the bucket holds this range, other buckets
    the rest. `of <2, tensor<4x6xf32>, <@mesh, [{}, {"tensor"} ]>>`: the tensor is that piece of one which other axes shard; without it, it is whole.
  }];
  let parameters = (ins "::mlir::Attribute":$role, "::mlir::RankedTensorType":$type, "int64_t":$begin, "int64_t":$end,
                        OptionalParameter<"::shoal::dist::GlobalAttr">:$global);
  let builders = [AttrBuilder<(ins "::mlir::Attribute":$role, "::mlir::RankedTensorType":$type, "::shoal::dist::GlobalAttr":$global), [{
    return $_get($_ctxt, role, type, 0, type.getNumElements(), global);
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// By which files and results know it.
    ::mlir::StringAttr getName() const;
    /// The type of the whole tensor.
    ::mlir::RankedTensorType getWholeType() const;
    /// Of the range that lies in the bucket.
    int64_t getNumElements() const { return getEnd() - getBegin(); }
    bool isWhole() const { return getNumElements() == getType().getNumElements(); }
  }];
}

def Dist_BucketAttr : Dist_Attr<"Bucket", "bucket"> {
  let summary = "the tensors that lie one after another in a 1-D argument or result";
  let description = [{
    `#dist.bucket<[#dist.member<...>, ...]>` as `dist.bucket` on an argument or result: its elements are those of the members, without gaps from element 0.
    A tensor that is too large for its bucket goes on in others: the ranges of its members are each of its elements once.
    Behind the last is padding, zeros everywhere and always, fewer elements than devices, so that the bucket divides. Made by `dist-pack`; the bucket has
    a role and name of its own (`nn.param = #nn.param<"bucket.3", ...>`), files and gradients are those of the members. A result that `nn.updates` a bucket
    has its members.
  }];
  let parameters = (ins ArrayRefParameter<"::shoal::dist::MemberAttr">:$members);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Of all members, without the padding.
    int64_t getNumElements() const;
  }];
}

#endif
