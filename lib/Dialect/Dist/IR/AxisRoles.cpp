// The table of axis names; see AxisRoles.h.
#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "shoal-rt/axis_names.h"

using namespace mlir;

namespace shoal::dist {

llvm::ArrayRef<KnownAxis> getKnownAxes() {
  static constexpr KnownAxis axes[] = {
      {"replica", AxisRole::Batch}, {"data", AxisRole::Batch},       {"tensor", AxisRole::Model},
      {"pipe", AxisRole::Pipe},     {"context", AxisRole::Sequence}, {"ulysses", AxisRole::Sequence},
  };
  return axes;
}

AxisRole getAxisRole(StringRef axis) {
  for (const KnownAxis &known : getKnownAxes())
    if (known.name == getAxisOrigin(axis))
      return known.role;
  return AxisRole::Model;
}

std::string getAxisPart(StringRef axis, unsigned part) { return (axis + "." + Twine(part)).str(); }

StringRef getAxisOrigin(StringRef axis) { return rt::axisOrigin(axis); }

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
