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

/// Buckets of two micro-batches are two: gives those of one copy of their body groups of their own, from the first that
/// is free in the function.
class GroupNumbers {
public:
  explicit GroupNumbers(int64_t &free) : free(free) {}

  /// Also those of regions in the op.
  void renumber(mlir::Operation *copy) {
    copy->walk([&](PackOp pack) {
      auto [group, isNew] = groups.try_emplace(pack.getGroup(), free);
      free += isNew;
      pack.setGroup(group->second);
    });
  }

private:
  int64_t &free;
  llvm::DenseMap<int64_t, int64_t> groups; // of the body -> of this copy
};

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_PACKGROUPS_H
