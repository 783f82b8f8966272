// Whether every mesh position has the values that it communicates and returns.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_DEFINEDPOSITIONS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_DEFINEDPOSITIONS_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// Fails, with an error, where a position would send, reduce or return what only other positions
/// have (`dist.at`).
mlir::LogicalResult checkDefined(mlir::func::FuncOp step, dist::MeshAttr mesh);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_DEFINEDPOSITIONS_H
