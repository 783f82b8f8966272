// The pipeline of a compiled step, as it would run.
#ifndef SHOAL_LIB_DRIVER_PIPELINE_H
#define SHOAL_LIB_DRIVER_PIPELINE_H

#include "shoal/Schedule/Timeline.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal {

/// Simulates the schedule of a module at L2, in milliseconds of one line of ranks, with estimated costs or with those of
/// a `profile`. Nothing where it has no stages.
mlir::FailureOr<std::optional<pipe::Timeline>> simulatePipeline(mlir::ModuleOp module, llvm::StringRef profile);

/// What people want to know of it, in lines.
std::string tellPipeline(const pipe::Timeline &timeline);

} // namespace shoal

#endif // SHOAL_LIB_DRIVER_PIPELINE_H
