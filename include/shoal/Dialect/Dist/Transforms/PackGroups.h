// Numbers of the buckets that `dist.pack` makes.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_PACKGROUPS_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_PACKGROUPS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::dist {

/// The first group of `dist.pack` that is free in a function.
inline int64_t findFreeGroup(mlir::Operation *func) {
  int64_t free = 0;
  func->walk([&](PackOp op) { free = std::max<int64_t>(free, op.getGroup() + 1); });
  return free;
}

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_PACKGROUPS_H
