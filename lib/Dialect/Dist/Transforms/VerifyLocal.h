// What dist-verify-local asks of a single op, for passes that read local programs only.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H

#include "mlir/IR/Operation.h"

namespace shoal::dist {

/// Fails with an error when something of the op is still to be partitioned: it belongs to a global program (L1).
llvm::LogicalResult verifyNothingLeft(mlir::Operation *op);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H
