// dist-split-axis: one mesh axis as several, so that dimensions may take a part of it each.
#include "shoal/Dialect/Dist/Transforms/SplitAxis.h"

#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"

namespace shoal::dist {
#define GEN_PASS_DEF_SPLITAXISPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal::dist;

// Ranks are row-major over the axes, so parts in place of their axis leave every element and every rank where
// they are; device_ids and dist.at speak of positions, which stay.
LogicalResult shoal::dist::splitAxis(ModuleOp module, StringAttr axis, ArrayRef<int64_t> factors) {
  MeshOp mesh = lookupMesh(module);
  MLIRContext *context = module.getContext();
  SmallVector<StringAttr> parts;
  SmallVector<MeshAxisAttr> axes;
  for (MeshAxisAttr old : mesh.getMesh().getAxes()) {
    if (old.getName() != axis) {
      axes.push_back(old);
      continue;
    }
    int64_t size = 1;
    for (int64_t factor : factors) {
      size = factor >= 1 && factor <= old.getSize() / size ? size * factor : 0;
      if (size == 0)
        break;
      parts.push_back(StringAttr::get(context, getAxisPart(axis, parts.size())));
      axes.push_back(MeshAxisAttr::get(context, parts.back(), factor));
    }
    if (factors.empty() || size != old.getSize()) {
      InFlightDiagnostic diag = mesh.emitError("parts of mesh axis ") << axis << " must multiply to its size "
                                                                       << old.getSize() << ", got: ";
      llvm::interleave(factors, diag, " * ");
      return diag;
    }
  }
  if (parts.empty())
    return mesh.emitError("axis to split must be one of the mesh's, got: ") << axis;
  for (StringAttr part : parts)
    if (mesh.getMesh().getAxisSize(part))
      return mesh.emitError("parts of mesh axis ") << axis << " need names of their own, the mesh has " << part;

  auto replace = [&](ArrayRef<StringAttr> names) {
    SmallVector<StringAttr> replaced;
    for (StringAttr name : names)
      if (name == axis)
        llvm::append_range(replaced, parts);
      else
        replaced.push_back(name);
    return replaced;
  };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](AxesAttr attr) { return AxesAttr::get(context, replace(attr.getAxes())); });
  replacer.addReplacement([&](FlatAttr attr) {
    return FlatAttr::get(context, replace(attr.getAxes()), attr.getPerUse());
  });
  replacer.addReplacement([&](DimShardingAttr attr) {
    return DimShardingAttr::get(context, replace(attr.getAxes()), attr.getIsClosed(), attr.getPriority());
  });
  replacer.addReplacement([&](ShardingAttr attr) {
    SmallVector<DimShardingAttr> dims;
    for (DimShardingAttr dim : attr.getDims())
      dims.push_back(cast<DimShardingAttr>(replacer.replace(dim)));
    return std::pair(ShardingAttr::get(context, attr.getMesh(), dims, attr.getUnreducedKind(),
                                       replace(attr.getUnreducedAxes())),
                     WalkResult::skip());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/false);
  mesh.setMeshAttr(MeshAttr::get(context, axes, mesh.getMesh().getDeviceIds()));
  return success();
}

LogicalResult shoal::dist::splitAxesAs(ModuleOp module, MeshAttr mesh) {
  for (MeshAxisAttr axis : lookupMesh(module).getMesh().getAxes()) {
    SmallVector<int64_t> factors;
    for (StringAttr part : resolveAxis(mesh, axis.getName()))
      factors.push_back(*mesh.getAxisSize(part));
    if (factors.size() > 1 && failed(splitAxis(module, axis.getName(), factors)))
      return failure();
  }
  return success();
}

namespace {

struct SplitAxisPass : shoal::dist::impl::SplitAxisPassBase<SplitAxisPass> {
  using Base::Base;

  void runOnOperation() override {
    auto mesh = getMeshWithAxes(getOperation(), {axis}, "splitting an axis");
    if (failed(mesh) || failed(splitAxis(getOperation(), StringAttr::get(&getContext(), axis),
                                         SmallVector<int64_t>(factors.begin(), factors.end()))))
      signalPassFailure();
  }
};

} // namespace
