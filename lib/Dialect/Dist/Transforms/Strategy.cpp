// Mesh axes and arguments of strategies; see Strategy.h.
#include "Strategy.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace shoal::dist {

FailureOr<MeshOp> getMeshWithAxes(ModuleOp module, ArrayRef<std::string> axes, StringRef strategy) {
  MeshOp mesh = lookupMesh(module);
  for (const std::string &axis : axes) {
    if (!mesh)
      return emitError(module.getLoc(), strategy) << " over axis \"" << axis << "\" needs a dist.mesh in the module";
    if (resolveAxis(mesh.getMesh(), axis).empty())
      return mesh.emitError(strategy) << " needs mesh axis \"" << axis << "\", the mesh is " << mesh.getMesh();
  }
  return mesh;
}

FailureOr<ResolvedAxes> resolveAxes(ModuleOp module, ArrayRef<std::string> named, StringRef strategy) {
  SmallVector<std::string> names(named.begin(), named.end());
  if (names.empty())
    names.push_back(kDataAxis.str());
  auto mesh = getMeshWithAxes(module, names, strategy);
  if (failed(mesh))
    return failure();
  ResolvedAxes resolved{*mesh, {}};
  for (const std::string &name : names)
    llvm::append_range(resolved.axes, resolveAxis(mesh->getMesh(), name));
  return resolved;
}

ArgAnnotator::ArgAnnotator(FunctionOpInterface func, MeshOp mesh)
    : func(func), symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())), signature(func) {}

ShardingAttr ArgAnnotator::get(unsigned index) const {
  return dyn_cast_or_null<ShardingAttr>(signature.getArgAttr(index, DistDialect::kShardingAttr));
}

void ArgAnnotator::set(unsigned index, ShardingAttr sharding) {
  signature.setArgAttr(index, DistDialect::kShardingAttr, sharding);
}

ArgAnnotator::Answer ArgAnnotator::ask(unsigned index, unsigned dim, ArrayRef<StringAttr> axes) const {
  ShardingAttr sharding = get(index);
  if (!sharding)
    return Answer::Free;
  if (llvm::all_of(axes, [&](StringAttr axis) { return llvm::is_contained(sharding.getDimAxes(dim), axis); }))
    return Answer::HasThem;
  if (llvm::any_of(axes, [&](StringAttr axis) { return sharding.uses(axis); }))
    return Answer::UsedElsewhere;
  // What this strategy itself has closed is still open to it.
  ShardingAttr hand = getSharding(FunctionOpInterface(func).getArgument(index));
  return hand && hand.getDims()[dim].getIsClosed() ? Answer::Closed : Answer::Free;
}

void ArgAnnotator::copyCauses(unsigned index, unsigned other, ArrayRef<StringAttr> axes) {
  // Of axes that are there by hand the file says nothing at this argument.
  CauseAttr hand = getHandCause(FunctionOpInterface(func).getArgument(other));
  auto whyOf = [&](unsigned argument) {
    return dyn_cast_or_null<DictionaryAttr>(signature.getArgAttr(argument, DistDialect::kWhyAttr));
  };
  // What a strategy has said of the argument itself, as of state that lies in a bucket, stays.
  NamedAttrList both(whyOf(index));
  for (NamedAttribute entry : whyOf(other) ? whyOf(other).getValue() : ArrayRef<NamedAttribute>())
    if (!both.get(entry.getName()))
      both.push_back(entry);
  DictionaryAttr why = both.empty() ? DictionaryAttr() : both.getDictionary(func.getContext());
  signature.setArgAttr(index, DistDialect::kWhyAttr, axes.empty() ? why : addCause(why, axes, hand));
}

void ArgAnnotator::setAs(unsigned index, unsigned other) {
  ShardingAttr sharding = get(other);
  set(index, sharding);
  SmallVector<StringAttr> axes;
  for (DimShardingAttr dim : sharding.getDims())
    llvm::append_range(axes, dim.getAxes());
  copyCauses(index, other, axes);
}

void ArgAnnotator::setFlatAs(unsigned index, unsigned other) {
  auto flat = dyn_cast_or_null<FlatAttr>(signature.getArgAttr(other, DistDialect::kFlatAttr));
  if (!flat || signature.getArgAttr(index, DistDialect::kFlatAttr))
    return;
  signature.setArgAttr(index, DistDialect::kFlatAttr, FlatAttr::get(func.getContext(), flat.getAxes(), false));
  copyCauses(index, other, flat.getAxes());
}

InFlightDiagnostic ArgAnnotator::emitUsedElsewhere(unsigned index, unsigned dim, ArrayRef<StringAttr> axes,
                                                   StringRef strategy) const {
  InFlightDiagnostic diag = nn::emitArgError(func, index) << strategy << " shards dimension " << dim << " over ";
  llvm::interleaveComma(axes, diag);
  return std::move(diag << ", but its annotation uses the axis elsewhere: " << get(index));
}

void ArgAnnotator::shard(unsigned index, unsigned dim, ArrayRef<StringAttr> axes, CauseAttr cause) {
  ShardingAttr sharding = get(index);
  if (!sharding)
    sharding = ShardingAttr::getReplicated(
        symbol, cast<RankedTensorType>(func.getArgumentTypes()[index]).getRank());
  SmallVector<DimShardingAttr> dims(sharding.getDims());
  SmallVector<StringAttr> all(dims[dim].getAxes());
  llvm::append_range(all, axes);
  dims[dim] = DimShardingAttr::get(func.getContext(), all, dims[dim].getIsClosed(), dims[dim].getPriority());
  set(index, sharding.withDims(dims));
  auto why = dyn_cast_or_null<DictionaryAttr>(signature.getArgAttr(index, DistDialect::kWhyAttr));
  signature.setArgAttr(index, DistDialect::kWhyAttr, addCause(why, axes, cause));
}

} // namespace shoal::dist
