// Shardings to layouts and back; see PlanMesh.h.
#include "PlanMesh.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace shoal::dist {

std::string printAxes(ArrayRef<StringAttr> axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '{';
  llvm::interleaveComma(axes, os, [&](StringAttr axis) { os << '"' << axis.getValue() << '"'; });
  os << '}';
  return text;
}

FailureOr<PlanMesh> PlanMesh::get(MeshOp mesh, ArrayRef<std::string> partitioned) {
  PlanMesh plan;
  plan.symbol = FlatSymbolRefAttr::get(mesh.getContext(), mesh.getSymName());
  plan.attr = mesh.getMesh();
  SmallVector<StringAttr> named;
  for (const std::string &name : partitioned) {
    // An axis that a strategy has split is all of its parts.
    SmallVector<StringAttr> parts = resolveAxis(plan.attr, name);
    if (parts.empty()) {
      mesh.emitError("axis to partition must be one of the mesh's, got: \"") << name << "\"";
      return failure();
    }
    llvm::append_range(named, parts);
  }
  for (MeshAxisAttr axis : plan.attr.getAxes()) {
    plan.axisSizes.push_back(axis.getSize());
    plan.inRun.push_back(partitioned.empty() || llvm::is_contained(named, axis.getName()));
  }
  if (!llvm::all_of(plan.inRun, [](bool in) { return in; }))
    mesh->getParentOp()->walk(
        [&](Operation *op) { plan.remaining |= plan.namesRemaining(op->getAttrDictionary()); });
  return plan;
}

bool PlanMesh::namesRemaining(Attribute attributes) const {
  bool found = false;
  auto check = [&](ArrayRef<StringAttr> axes) {
    for (StringAttr axis : axes)
      found |= attr.getAxisSize(axis) && !isPartitioned(attr.getAxisIndex(axis));
  };
  attributes.walk<WalkOrder::PreOrder>([&](Attribute nested) {
    // Tags tell what earlier runs did.
    if (isa<GlobalAttr>(nested))
      return WalkResult::skip();
    if (auto sharding = dyn_cast<ShardingAttr>(nested)) {
      check(sharding.getUnreducedAxes());
      for (DimShardingAttr dim : sharding.getDims())
        check(dim.getAxes());
    }
    return WalkResult::advance();
  });
  return found;
}

FailureOr<PlanMesh::Parts> PlanMesh::split(Location loc, ShardingAttr sharding,
                                           RankedTensorType type) const {
  Parts parts{whole(type.getRank()), whole(type.getRank())};
  if (!sharding)
    return parts;
  if (sharding.getMesh() != symbol ||
      sharding.getDims().size() != static_cast<size_t>(type.getRank())) {
    emitError(loc, "sharding does not fit the value ") << type << ", got: " << sharding;
    return failure();
  }
  for (auto [d, dim] : llvm::enumerate(sharding.getDims())) {
    SmallVector<StringAttr> mine, remaining;
    for (StringAttr name : dim.getAxes()) {
      if (!attr.getAxisSize(name)) {
        emitError(loc, "sharding names an axis that the mesh has not, got: ") << name;
        return failure();
      }
      unsigned axis = attr.getAxisIndex(name);
      bool inThisRun = isPartitioned(axis);
      (inThisRun ? mine : remaining).push_back(name);
      if (inThisRun && !remaining.empty()) {
        emitError(loc, "dimension ")
            << d << " is sharded by " << printAxes(dim.getAxes()) << ": its minor axis " << name
            << " cannot be partitioned before its major axis " << remaining.front() << "; write " << name << " first";
        return failure();
      }
      if (axisSizes[axis] > 1)
        (inThisRun ? parts.layout : parts.rest).dims[d].push_back(axis);
    }
    int64_t outer = groupSize(parts.layout.dims[d], axisSizes);
    int64_t inner = groupSize(parts.rest.dims[d], axisSizes);
    if (!shardsNest(type.getDimSize(d), outer, inner)) {
      emitError(loc, "dimension of size ")
          << type.getDimSize(d) << " is sharded by " << printAxes(dim.getAxes())
          << ", which does not divide it: partition " << printAxes(mine) << " and "
          << printAxes(remaining) << " in one run, or shard by one of them";
      return failure();
    }
  }
  for (unsigned axis = 0; axis < axisSizes.size(); ++axis)
    if (llvm::is_contained(sharding.getUnreducedAxes(), name(axis)) && axisSizes[axis] > 1)
      (isPartitioned(axis) ? parts.layout : parts.rest).unreduced.push_back(axis);
  parts.layout.kind = parts.rest.kind = fromAttrEnum(sharding.getUnreducedKind());
  return parts;
}

Layout PlanMesh::whole(int64_t rank) const {
  Layout layout;
  layout.dims.resize(rank);
  return layout;
}

ShardingAttr PlanMesh::toSharding(const Layout &layout) const {
  return extend(ShardingAttr::getReplicated(symbol, layout.dims.size()), layout);
}

ShardingAttr PlanMesh::extend(ShardingAttr base, const Layout &layout) const {
  SmallVector<DimShardingAttr> dims;
  for (auto [dim, added] : llvm::zip_equal(base.getDims(), layout.dims)) {
    SmallVector<StringAttr> axes(dim.getAxes());
    for (unsigned axis : added)
      axes.push_back(name(axis));
    dims.push_back(DimShardingAttr::get(getContext(), axes, /*isClosed=*/true, /*priority=*/0));
  }
  SmallVector<StringAttr> unreduced(base.getUnreducedAxes());
  for (unsigned axis : layout.unreduced)
    unreduced.push_back(name(axis));
  ReduceKindAttrEnum kind =
      layout.unreduced.empty() ? base.getUnreducedKind() : toAttrEnum(layout.kind);
  return ShardingAttr::get(getContext(), base.getMesh(), dims, kind, unreduced);
}

GlobalAttr PlanMesh::extend(GlobalAttr tag, const Layout &layout) const {
  for (auto [size, dim, added] :
       llvm::zip_equal(tag.getType().getShape(), tag.getSharding().getDims(), layout.dims))
    if (!shardsNest(size, attr.getSize(dim.getAxes()), groupSize(added, axisSizes)))
      return {};
  return GlobalAttr::get(getContext(), tag.getId(), tag.getType(),
                         extend(tag.getSharding(), layout));
}

AxesAttr PlanMesh::toAxes(ArrayRef<unsigned> axes) const {
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(name(axis));
  return AxesAttr::get(getContext(), names);
}

SmallVector<int64_t> PlanMesh::indicesAlong(ArrayRef<unsigned> axes) const {
  AxesAttr names = toAxes(axes);
  return llvm::map_to_vector(llvm::seq<int64_t>(0, attr.getNumDevices()),
                             [&](int64_t position) { return attr.getIndexAlong(position, names.getAxes()); });
}

std::string PlanMesh::print(const Layout &layout) const {
  auto names = [&](ArrayRef<unsigned> axes) { return printAxes(toAxes(axes).getAxes()); };
  std::string text = "[";
  for (auto [i, axes] : llvm::enumerate(layout.dims))
    text += (i ? ", " : "") + names(axes);
  text += "]";
  if (!layout.unreduced.empty())
    text +=
        " " + stringifyReduceKindAttrEnum(toAttrEnum(layout.kind)).str() + names(layout.unreduced);
  return text;
}

} // namespace shoal::dist
