// Rules of dist-verify-local with files of their own, or with other readers: what it asks of a single op is asked by passes
// that read local programs only.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal::dist {

/// Fails with an error when something of the op is still to be partitioned: it belongs to a global program (L1).
llvm::LogicalResult verifyNothingLeft(mlir::Operation *op);

/// Fails where a parameter that lies flat `per_use` is kept whole from one use to another: from forward to backward, or
/// over micro-batches.
llvm::LogicalResult verifyPerUse(mlir::FunctionOpInterface func, MeshAttr mesh);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H
