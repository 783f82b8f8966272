// What the stages of a step cost, by its operations or by what a run has measured.
#ifndef SHOAL_DIALECT_PIPE_TRANSFORMS_STAGECOSTS_H
#define SHOAL_DIALECT_PIPE_TRANSFORMS_STAGECOSTS_H

#include "shoal/Schedule/Costs.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace shoal::pipe {

/// Of the only step of a module behind `pipe-split`, in milliseconds of the device of OpCost.h: what the functions of
/// each stage compute, keep for each other and send. Exact in bytes. What follows the region over micro-batches, by an
/// equal share of each rank, is the update. With a `profile` (shoal/Schedule/Profile.h), a file, durations are those of
/// it. An error where the module has no such step or the file is no profile of it. Evaluation takes the profile of its
/// training.
mlir::FailureOr<Costs> estimateCosts(mlir::ModuleOp module, const Shape &shape, llvm::StringRef profile);

/// Replaces durations, in milliseconds, by those of the file `profile`, as `applyProfile` (shoal/Schedule/Profile.h)
/// takes them for the stages `own`. An error where it is no such profile.
llvm::LogicalResult readProfile(mlir::ModuleOp module, llvm::StringRef profile, std::optional<llvm::StringRef> own,
                                Costs &costs);

/// What costs of the stages of the module's step (behind `pipe-split`) are costs of, in a line: model, stages, rows of a
/// micro-batch, other mesh axes, and a number made of all ops of the stages and of the parameters and states that are
/// updated. The order of the schedule, its parts of the backward pass and the number of micro-batches are not in it.
/// Empty without such a step.
std::string describeStages(mlir::ModuleOp module, const Shape &shape);

} // namespace shoal::pipe

#endif // SHOAL_DIALECT_PIPE_TRANSFORMS_STAGECOSTS_H
