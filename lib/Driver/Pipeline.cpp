// Simulation of the schedule with the costs of the step, and its words.
#include "Pipeline.h"

#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/Transforms/StageCosts.h"
#include "shoal/Report/TimelinePage.h"
#include "shoal/Schedule/Simulate.h"

#include "shoal-rt/html.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shoal {

FailureOr<std::optional<pipe::Timeline>> simulatePipeline(ModuleOp module, StringRef profile) {
  auto schedules = llvm::to_vector(module.getOps<pipe::ScheduleOp>());
  if (schedules.empty())
    return std::optional<pipe::Timeline>();
  pipe::Schedule schedule = schedules.front().getSchedule();
  FailureOr<pipe::Costs> costs = pipe::estimateCosts(module, schedule.shape, profile);
  if (failed(costs))
    return failure();
  std::optional<pipe::Timeline> timeline = pipe::simulate(schedule, *costs);
  if (!timeline)
    return schedules.front().emitError() << "cannot run: its ranks wait for each other (pipe-verify says more)", failure();
  for (auto step : module.getOps<func::FuncOp>()) // of training, where its evaluation is beside it
    if (!step.isPrivate() && (timeline->title.empty() || !step->hasAttr(nn::kEvaluationAttr)))
      timeline->title = step.getSymName();
  timeline->unit = "ms";
  timeline->note = profile.empty() ? "Simulated, with costs estimated from operations and bytes at the rates of one CPU "
                                     "core; --pipeline-costs takes measured ones."
                                   : "Simulated, with the costs measured in " + profile.str() + ".";
  return timeline;
}

std::string tellPipeline(const pipe::Timeline &simulated) {
  rt::Timeline timeline = report::toTimeline(simulated);
  auto time = [&](double value) { return rt::showNumber(value) + " " + timeline.unit; };
  double makespan = timeline.makespan();
  std::string text = "the pipeline: makespan " + time(makespan) + ", bubble " +
                     rt::showNumber(100 * timeline.bubble(), "%.1f") + " %, " +
                     rt::showNumberOf(timeline.transfers.size(), "message") + " of " +
                     rt::showBytes(timeline.transferBytes()) + " along a line of ranks\n  " + timeline.note + "\n";
  const rt::TimelineRank *slowest = nullptr;
  for (const rt::TimelineRank &rank : timeline.ranks) {
    text += "  " + rank.name + ": busy " + time(rank.busy) + ", idle " + time(makespan - rank.busy) +
            ", stashes at most " + rt::showCount(uint64_t(rank.peakStash)) +
            (rank.peakStash == 1 ? " micro-batch" : " micro-batches") +
            (rank.peakBytes ? " (" + rt::showBytes(rank.peakBytes) + ")" : "") + "\n";
    if (rank.normWait() && (!slowest || *rank.normWait() > *slowest->normWait()))
      slowest = &rank;
  }
  if (slowest)
    text += "  the update waits for the norm of all stages' gradients: " + slowest->name + " the longest, " +
            time(*slowest->normWait()) + " after its last backward pass\n";
  return text;
}

} // namespace shoal
