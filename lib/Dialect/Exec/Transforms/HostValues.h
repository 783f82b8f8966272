// Which ops of a step run on the host: those that become parts of kernels, or are views, and read what lies there.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_HOSTVALUES_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_HOSTVALUES_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "llvm/ADT/DenseSet.h"

namespace shoal::exec {

/// After exec-insert-transfers, all operands of these but constants lie on the host.
llvm::DenseSet<mlir::Operation *> findHostOps(mlir::func::FuncOp step);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_HOSTVALUES_H
