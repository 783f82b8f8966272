// The table of axis names; see AxisRoles.h.
#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "shoal-rt/axis_names.h"

using namespace mlir;

namespace shoal::dist {

llvm::ArrayRef<KnownAxis> getKnownAxes() {
  static constexpr KnownAxis axes[] = {
      {"replica", AxisRole::Batch},
      {kDataAxis, AxisRole::Batch},
      {kTensorAxis, AxisRole::Model, "--tensor-parallel"},
      {kPipeAxis, AxisRole::Pipe},
      {kContextAxis, AxisRole::Sequence, "--context-parallel"},
      {kUlyssesAxis, AxisRole::Sequence, "--context-parallel hybrid"},
  };
  return axes;
}

static const KnownAxis *findKnown(StringRef axis) {
  return llvm::find_if(getKnownAxes(), [&](const KnownAxis &known) { return known.name == getAxisOrigin(axis); });
}

AxisRole getAxisRole(StringRef axis) {
  const KnownAxis *known = findKnown(axis);
  return known == getKnownAxes().end() ? AxisRole::Model : known->role;
}

StringRef getAxisFlag(StringRef axis) {
  const KnownAxis *known = findKnown(axis);
  return known == getKnownAxes().end() ? StringRef() : StringRef(known->flag);
}

std::string getAxisPart(StringRef axis, unsigned part) { return (axis + "." + Twine(part)).str(); }

StringRef getAxisOrigin(StringRef axis) { return rt::axisOrigin(axis); }

std::vector<std::string> getAxisNames(AxesAttr axes) {
  std::vector<std::string> names;
  if (axes)
    for (StringAttr axis : axes.getAxes())
      names.push_back(axis.str());
  return names;
}

std::vector<std::string> getAxisNames(MeshAttr mesh) {
  std::vector<std::string> names;
  if (mesh)
    for (MeshAxisAttr axis : mesh.getAxes())
      names.push_back(axis.getName().str());
  return names;
}

StringAttr getPipeAxis(MeshAttr mesh) {
  if (mesh)
    for (MeshAxisAttr axis : mesh.getAxes())
      if (axis.getSize() > 1 && getAxisRole(axis.getName().getValue()) == AxisRole::Pipe)
        return axis.getName();
  return {};
}

int64_t getPipeRanks(Operation *op) {
  MeshOp mesh = lookupMesh(op);
  StringAttr axis = mesh ? getPipeAxis(mesh.getMesh()) : StringAttr();
  return axis ? *mesh.getMesh().getAxisSize(axis) : 1;
}

bool hasPipeline(Operation *op) { return getPipeRanks(op) > 1; }

SmallVector<StringAttr> resolveAxis(MeshAttr mesh, StringRef axis) {
  SmallVector<StringAttr> parts;
  for (MeshAxisAttr known : mesh.getAxes()) {
    if (known.getName() == axis)
      return {known.getName()};
    if (getAxisOrigin(known.getName()) == axis)
      parts.push_back(known.getName());
  }
  return parts;
}

} // namespace shoal::dist
