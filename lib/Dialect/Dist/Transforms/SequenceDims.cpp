// Finds the sequence of a model by sharding rules; see SequenceDims.h.
#include "SequenceDims.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"

using namespace mlir;

namespace shoal::dist {

/// One token needs no axis: of dimensions of size 1 a value may have several.
static SmallVector<unsigned> findDims(const DimGroups &groups, const llvm::BitVector &set, Value value) {
  SmallVector<unsigned> dims;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  for (int64_t d = 0; type && d < type.getRank(); ++d)
    if (unsigned group = groups.find(value, d); group != DimGroups::kNone && set.test(group) && type.getDimSize(d) != 1)
      dims.push_back(d);
  return dims;
}

static LogicalResult verifyOnePerValue(func::FuncOp func, const DimGroups &groups, const llvm::BitVector &set) {
  auto tell = [](InFlightDiagnostic &diag, ArrayRef<unsigned> dims, Value value) -> InFlightDiagnostic & {
    llvm::interleave(dims, diag, " and ");
    return diag << ", and no axis shards both, got: " << value.getType();
  };
  for (BlockArgument argument : func.getArguments())
    if (SmallVector<unsigned> dims = findDims(groups, set, argument); dims.size() > 1) {
      InFlightDiagnostic diag = nn::emitArgError(func, argument.getArgNumber());
      return tell(diag << "the sequence of nn.attention is in dimensions ", dims, argument)
             << "; context parallelism shards tokens that nn.attention alone mixes: leave out --context-parallel, or "
             << "mix tokens by nn.attention";
    }
  for (Operation &op : func.front())
    for (Value result : op.getResults())
      if (SmallVector<unsigned> dims = findDims(groups, set, result); dims.size() > 1) {
        InFlightDiagnostic diag = emitError(result.getLoc());
        return tell(diag << "a value has the sequence of nn.attention in dimensions ", dims, result)
               << "; compute scores by nn.attention";
      }
  return success();
}

FailureOr<SequenceDims> SequenceDims::find(func::FuncOp func, const DimGroups &groups) {
  llvm::BitVector set(groups.getNumGroups());
  for (const DimGroups::Entry &entry : groups.getEntries())
    for (AlignedFactors pair : entry.rule.aligned)
      for (unsigned factor : {pair.lead, pair.passing})
        if (unsigned group = entry.groups[factor]; group != DimGroups::kNone)
          set.set(group);
  if (failed(verifyOnePerValue(func, groups, set)))
    return failure();
  return SequenceDims(groups, std::move(set));
}

std::optional<unsigned> SequenceDims::findDim(Value value) const {
  if (SmallVector<unsigned> dims = findDims(*groups, set, value); !dims.empty())
    return dims.front();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  for (int64_t d = 0; type && d < type.getRank(); ++d)
    if (contains(groups->find(value, d)))
      return d; // of one token
  return std::nullopt;
}

GroupAxes::GroupAxes(func::FuncOp func, const DimGroups &groups) : axes(groups.getNumGroups()) {
  auto note = [&](Value value) {
    ShardingAttr sharding = getSharding(value);
    for (auto [d, dim] : llvm::enumerate(sharding ? sharding.getDims() : ArrayRef<DimShardingAttr>()))
      if (unsigned group = groups.find(value, d); group != DimGroups::kNone && axes[group].empty())
        axes[group].assign(dim.getAxes().begin(), dim.getAxes().end());
  };
  for (BlockArgument argument : func.getArguments())
    note(argument);
  for (Operation &op : func.front())
    for (Value result : op.getResults())
      note(result);
}

ShardingAttr shardAlong(FlatSymbolRefAttr mesh, Value value, unsigned dim, ArrayRef<StringAttr> axes) {
  SmallVector<DimShardingAttr> dims;
  for (unsigned d = 0; d < cast<RankedTensorType>(value.getType()).getRank(); ++d)
    dims.push_back(DimShardingAttr::get(mesh.getContext(), d == dim ? axes : ArrayRef<StringAttr>(),
                                        /*isClosed=*/d == dim, /*priority=*/0));
  return ShardingAttr::get(mesh.getContext(), mesh, dims, ReduceKindAttrEnum::sum, {});
}

} // namespace shoal::dist
