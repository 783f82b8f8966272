// Attributes that dist passes hand on without reading them.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FOREIGNATTRS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FOREIGNATTRS_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"

namespace shoal::dist {

/// What later levels are to know of a result: attributes of dialects other than `nn` and `dist`.
inline void copyForeignAttrs(mlir::Operation *from, mlir::Operation *to) {
  for (mlir::NamedAttribute attr : from->getDiscardableAttrs())
    if (mlir::Dialect *dialect = attr.getNameDialect(); dialect && !llvm::isa<nn::NNDialect, DistDialect>(dialect))
      to->setAttr(attr.getName(), attr.getValue());
}

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FOREIGNATTRS_H
