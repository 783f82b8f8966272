// Who talks to whom: index arithmetic on the rank's position, folded for every position of the
// mesh.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PEERS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PEERS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::exec {

/// Per mesh position the mesh position of the peer that a send or receive over `axes` names, -1
/// where the op does not run. Emits an error at `op` for a peer outside the group.
mlir::FailureOr<llvm::SmallVector<int64_t>> evaluatePeers(mlir::Operation *op, mlir::Value peer,
                                                          llvm::ArrayRef<mlir::StringAttr> axes,
                                                          dist::MeshAttr mesh);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PEERS_H
