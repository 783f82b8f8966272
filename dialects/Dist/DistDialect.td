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
    Shardy's `sdy` dialect. A module holds exactly one `dist.mesh` if it names axes.
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
    /// On L2 op: array of #dist.global, one per result: which global value this is a piece of.
    static constexpr llvm::StringLiteral kGlobalsAttr = "dist.globals";
  }];
}

#endif
