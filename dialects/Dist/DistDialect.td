#ifndef SHOAL_DIST_DIALECT
#define SHOAL_DIST_DIALECT

include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::shoal::dist";
  let summary = "Meshes, shardings and collectives";
  let description = [{
    The parallel plan. At L1 values carry `#dist.sharding` annotations: function arguments and
    results in the attribute `dist.sharding`, op results in `dist.shardings` (one per result). At L2
    tensors are one device's shards and the collectives are explicit. Textual forms follow
    Shardy's `sdy` dialect. A module holds exactly one `dist.mesh` if it names axes. An op of L2 that only some mesh positions run says so in
    `dist.at`; elsewhere it has no results, and nobody there may read them.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Attribute names; see the dialect's description.
    static constexpr llvm::StringLiteral kShardingAttr = "dist.sharding";
    static constexpr llvm::StringLiteral kShardingsAttr = "dist.shardings";
    /// On accumulate: array of #dist.sharding, one per argument of the body.
    static constexpr llvm::StringLiteral kArgShardingsAttr = "dist.arg_shardings";
    /// On an evaluation step: the attributes of the arguments of its training step that are buckets of parameters, until
    /// `dist-pack` lays its own parameters so.
    static constexpr llvm::StringLiteral kBucketsAttr = "dist.buckets";
    /// On arguments and results: #dist.flat, the axes over which its elements lie sharded in a bucket.
    static constexpr llvm::StringLiteral kFlatAttr = "dist.flat";
    /// On L1 op, arguments and results: a dictionary of #dist.cause, which annotation brought an axis to its values. Written by
    /// strategies where they annotate and by `dist-propagate` for the rest; gone when nothing is left to partition.
    static constexpr llvm::StringLiteral kWhyAttr = "dist.why";
    /// On op: its number, given by `dist-number`.
    static constexpr llvm::StringLiteral kIdAttr = "dist.id";
    /// On L2 op: array of #dist.global, one per result: which global value this is a piece of.
    static constexpr llvm::StringLiteral kGlobalsAttr = "dist.globals";
    /// On arguments and results of an L2 function: one #dist.global, `id` is the index of the argument or result.
    static constexpr llvm::StringLiteral kGlobalAttr = "dist.global";
    /// On arguments and results that hold several tensors one after another: #dist.bucket.
    static constexpr llvm::StringLiteral kBucketAttr = "dist.bucket";
    /// On L2 op: the mesh positions that run it, all without it. Elsewhere it has no results. Communication says it by
    /// hand or from control flow, what computes by `dist-narrow-positions`.
    static constexpr llvm::StringLiteral kAtAttr = "dist.at";
    /// On dist.reshard, and on the collectives it becomes: fetches again, for the backward pass, what the forward pass
    /// had and did not keep. Neither merged with the first, nor started before the place where it stands.
    static constexpr llvm::StringLiteral kRefetchAttr = "dist.refetch";
    /// The same of what no earlier part of the step had: a gather of parameters for the readers that follow it.
    static constexpr llvm::StringLiteral kFetchAttr = "dist.fetch";
    /// On dist.permute_start: the same number for all that is sent around one ring, for one op.
    static constexpr llvm::StringLiteral kRingAttr = "dist.ring";

  private:
    void registerAttributesAndTypes();

  public:
  }];
}

#endif
