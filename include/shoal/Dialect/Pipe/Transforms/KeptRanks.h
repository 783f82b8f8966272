// Which ranks of a pipeline keep what a step replaces.
#ifndef SHOAL_DIALECT_PIPE_TRANSFORMS_KEPTRANKS_H
#define SHOAL_DIALECT_PIPE_TRANSFORMS_KEPTRANKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringMap.h"

namespace shoal::pipe {

/// Of a step behind pipe-split, by name: the ranks that have the new value of an argument, and thereby the argument.
/// Empty for other steps.
llvm::StringMap<llvm::BitVector> findKeptRanks(mlir::func::FuncOp step);

} // namespace shoal::pipe

#endif // SHOAL_DIALECT_PIPE_TRANSFORMS_KEPTRANKS_H
