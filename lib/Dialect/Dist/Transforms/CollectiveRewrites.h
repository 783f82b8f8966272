// What rewrites of collectives share: how attributes are handed on, and ops that are replaced.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_COLLECTIVEREWRITES_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_COLLECTIVEREWRITES_H

#include "ForeignAttrs.h"

#include "shoal/Interfaces/Origin.h"

namespace shoal::dist {

inline void copyAttr(mlir::Operation *from, mlir::Operation *to, llvm::StringRef name) {
  if (mlir::Attribute attr = from->getAttr(name))
    to->setAttr(name, attr);
}

/// What says how the result lies; both levels of tags.
inline void copyTags(mlir::Operation *from, mlir::Operation *to) {
  copyAttr(from, to, DistDialect::kShardingsAttr);
  copyAttr(from, to, DistDialect::kGlobalsAttr);
  copyOrigin(from, to);
  copyForeignAttrs(from, to);
}

/// Who runs it: a collective that stands for another is run by the same positions.
inline void copyPositions(mlir::Operation *from, mlir::Operation *to) { copyAttr(from, to, DistDialect::kAtAttr); }

/// Ops that rewrites of one sweep have replaced. They leave their blocks at once and are destroyed
/// later, so that a list of ops stays valid meanwhile.
class Retired {
public:
  ~Retired() {
    for (mlir::Operation *op : ops)
      op->destroy();
  }
  void add(mlir::Operation *op) {
    op->dropAllReferences();
    op->remove();
    ops.push_back(op);
  }

private:
  llvm::SmallVector<mlir::Operation *> ops;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_COLLECTIVEREWRITES_H
