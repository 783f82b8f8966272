// The pipeline of a compiled step, as it would run.
#ifndef SHOAL_LIB_DRIVER_PIPELINE_H
#define SHOAL_LIB_DRIVER_PIPELINE_H

#include "shoal/Pipelines/PlanOptions.h"
#include "shoal/Report/Page.h"
#include "shoal/Schedule/Timeline.h"

#include "mlir/IR/BuiltinOps.h"

#include <utility>

namespace shoal {

/// Tells of a named schedule that micro-batches are too few for: fewer than it has ranks never keep all of these busy.
/// Of naive, that it makes nothing of several.
void tellFewMicrobatches(mlir::ModuleOp module, const PlanOptions &plan);

/// Simulates the schedule of a module at L2, in milliseconds of one line of ranks, with estimated costs or with those of
/// a `profile`. Nothing where it has no stages.
mlir::FailureOr<std::optional<pipe::Timeline>> simulatePipeline(mlir::ModuleOp module, llvm::StringRef profile);

/// What people want to know of it, in lines. `sums`: how often stages exchange sums behind the micro-batches, and the
/// bytes that a rank sends for them at most.
std::string tellPipeline(const pipe::Timeline &timeline, std::pair<uint64_t, uint64_t> sums);

/// A line per stage: its rank, its layers and their parameters.
std::string tellStages(llvm::ArrayRef<report::PageStage> stages);
/// The same for the report's `pipeline`.
nlohmann::ordered_json toReport(llvm::ArrayRef<report::PageStage> stages);

} // namespace shoal

#endif // SHOAL_LIB_DRIVER_PIPELINE_H
