// Who talks to whom: index arithmetic on the rank's position, folded for every position of the
// mesh.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PEERS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PEERS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::exec {

/// The value of an `index` at a mesh position; emits an error when it is not made of constants,
/// dist.axis_index and ops that fold.
mlir::FailureOr<int64_t> evaluateAt(mlir::Value index, dist::MeshAttr mesh, int64_t position);

/// Per mesh position the mesh position of the peer that a send or receive over `axes` names. Emits
/// an error at `op` for a peer outside the group.
mlir::FailureOr<llvm::SmallVector<int64_t>> evaluatePeers(mlir::Operation *op, mlir::Value peer,
                                                          llvm::ArrayRef<mlir::StringAttr> axes,
                                                          dist::MeshAttr mesh);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PEERS_H
