// Schedules by name. Each takes the number of ranks, micro-batches and chunks, and the costs where it adapts to them.
#ifndef SHOAL_SCHEDULE_GENERATE_H
#define SHOAL_SCHEDULE_GENERATE_H

#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Costs.h"

#include "llvm/ADT/ArrayRef.h"

namespace shoal::pipe {

/// What follows the last backward.
enum class Optimizer {
  None,
  Update,        ///< each rank updates its stages when its gradients are there
  NormAndUpdate, ///< with a global clip norm no rank updates before all have exchanged it
};

std::optional<Optimizer> symbolizeOptimizer(llvm::StringRef name);

/// Adds the actions of the step's optimizer that the schedule lacks, N in front of U, behind all others of each rank. The
/// first one that stands there and the step has not is a fault.
std::optional<Fault> setOptimizer(Schedule &schedule, Optimizer optimizer);

struct GenerateOptions {
  Optimizer optimizer = Optimizer::None;
  /// Of the stages; equal ones when empty.
  std::optional<Costs> costs;
  /// Without gradients: the forward passes in their order, no optimizer, and nothing that is stashed.
  bool isForwardOnly = false;
};

/// naive, gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v.
llvm::ArrayRef<llvm::StringRef> getScheduleNames();

/// The chunks per rank that the schedule is made for when the user names none.
int64_t getDefaultChunks(llvm::StringRef name);

/// A schedule without messages, its peak stated. `shape.placement` is the schedule's own. Nothing, with one line in
/// `error` that has the rule, the values and a next step, where it does not take the shape.
///
/// naive: one micro-batch at a time. gpipe: Huang et al. 2019. 1f1b: PipeDream-Flush, Narayanan et al. 2021, as is
/// interleaved. zb-h1, zb-h2: Qi et al. 2023, "Zero Bubble Pipeline Parallelism". zb-v: Qi et al. 2024, "Pipeline
/// Parallelism with Controllable Memory". Orders are those of torch.distributed.pipelining where it has the schedule;
/// zb-h2 and zb-v take the order that the costs make shortest, among the published one and list schedules within the
/// same peak.
std::optional<Schedule> generate(llvm::StringRef name, Shape shape, const GenerateOptions &options, std::string &error);

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_GENERATE_H
