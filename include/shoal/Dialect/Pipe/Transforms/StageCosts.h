// What the stages of a step cost, by its operations or by what a run has measured.
#ifndef SHOAL_DIALECT_PIPE_TRANSFORMS_STAGECOSTS_H
#define SHOAL_DIALECT_PIPE_TRANSFORMS_STAGECOSTS_H

#include "shoal/Schedule/Costs.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal::pipe {

/// Of the only step of a module behind `pipe-split`, in milliseconds of the device of OpCost.h: what the functions of each
/// stage compute, keep for each other and send. Exact in bytes. What follows the region over micro-batches, by an equal
/// share of each rank, is the update. With a `profile` (shoal/Schedule/Profile.h), a file, durations are those of it. An
/// error where the module has no such step or the file is no profile of it.
mlir::FailureOr<Costs> estimateCosts(mlir::ModuleOp module, const Shape &shape, llvm::StringRef profile);

} // namespace shoal::pipe

#endif // SHOAL_DIALECT_PIPE_TRANSFORMS_STAGECOSTS_H
