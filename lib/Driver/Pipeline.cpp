// Simulation of the schedule with the costs of the step, and its words.
#include "Pipeline.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/Transforms/StageCosts.h"
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Report/TimelinePage.h"
#include "shoal/Schedule/Generate.h"
#include "shoal/Schedule/Simulate.h"

#include "shoal-rt/html.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;

namespace shoal {

/// What of the ranks' time is idle, in percent, where stages take equally long.
static std::optional<int64_t> getBubble(StringRef schedule, const pipe::Shape &shape) {
  std::string error; // what a schedule does not take is refused where it is made
  if (!pipe::findFault(shape).empty())
    return std::nullopt;
  std::optional<pipe::Schedule> made = pipe::generate(schedule, shape, {}, error);
  if (!made)
    return std::nullopt;
  std::optional<pipe::Timeline> timeline = pipe::simulate(*made, pipe::Costs::uniform(made->shape));
  return timeline ? std::optional(int64_t(std::lround(100 * timeline->getBubble()))) : std::nullopt;
}

/// One micro-batch at a time is meant so; of several, others could be on the way.
static void tellNaive(ModuleOp module, const pipe::Shape &shape) {
  if (shape.microbatches == 1)
    return;
  constexpr StringRef kBetter = "1f1b";
  std::optional<int64_t> own = getBubble("naive", shape), better = getBubble(kBetter, shape);
  if (own && better)
    emitRemark(UnknownLoc::get(module.getContext()))
        << "--pipeline-schedule naive takes one micro-batch at a time, which leaves the " << shape.ranks
        << " ranks of the pipeline idle for " << *own << " % of the step, where stages take equally long, and "
        << kBetter << " with these " << shape.microbatches << " for " << *better << " %";
}

void tellFewMicrobatches(ModuleOp module, const PlanOptions &plan) {
  int64_t ranks = dist::getPipeRanks(module);
  if (plan.mode != "train" || ranks == 1 || !plan.scheduleFile.empty())
    return;
  if (plan.pipelineSchedule == "naive")
    return tellNaive(module, {ranks, plan.microbatches, getChunks(plan)});
  if (plan.microbatches >= ranks)
    return;
  constexpr int64_t kPerRank = 4; // from which on bubbles are small: Huang et al. 2019
  pipe::Shape shape{ranks, plan.microbatches, getChunks(plan)};
  std::optional<int64_t> few = getBubble(plan.pipelineSchedule, shape);
  shape.microbatches = kPerRank * ranks;
  std::optional<int64_t> many = getBubble(plan.pipelineSchedule, shape);
  if (few && many)
    emitRemark(UnknownLoc::get(module.getContext()))
        << (plan.microbatches == 1 ? std::string("one micro-batch leaves")
                                   : std::to_string(plan.microbatches) + " micro-batches leave")
        << " the " << ranks << " ranks of the pipeline idle for " << *few << " % of the step, where stages take "
        << "equally long, and " << shape.microbatches << " for " << *many << " %; take more (--microbatches), or fewer "
        << "ranks";
}

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

std::string tellPipeline(const pipe::Timeline &simulated, std::pair<uint64_t, uint64_t> sums) {
  rt::Timeline timeline = report::toTimeline(simulated);
  auto time = [scale = rt::TimeScale(timeline)](double value) { return scale.show(value); };
  double makespan = timeline.makespan();
  std::string text = "the pipeline: makespan " + time(makespan) + ", bubble " +
                     rt::showNumber(100 * timeline.bubble(), "%.1f") + " %, " +
                     rt::showNumberOf(timeline.numMessages(), "message") + " of " +
                     rt::showBytes(timeline.messageBytes()) + " (activations and cotangents) along a line of ranks\n  ";
  if (auto [count, bytes] = sums; count > 0)
    text += "besides, behind the micro-batches, " + rt::showNumberOf(count, "exchange") +
            " of sums over stages, for which a rank sends at most " + rt::showBytes(bytes) + "\n  ";
  text += timeline.note + "\n";
  const rt::TimelineRank *slowest = nullptr;
  for (const rt::TimelineRank &rank : timeline.ranks) {
    text += "  " + rank.name + ": busy " + time(rank.busy) + ", idle " + time(rt::idleTime(makespan, rank.busy));
    if (rank.peakStash)
      text += ", stashes at most " + rt::showCount(uint64_t(rank.peakStash)) +
              (rank.peakStash == 1 ? " micro-batch" : " micro-batches") + " (" + rt::showBytes(rank.peakBytes) + ")";
    text += "\n";
    if (rank.normWait() && (!slowest || *rank.normWait() > *slowest->normWait()))
      slowest = &rank;
  }
  if (slowest)
    text += "  the update waits for the norm of all stages' gradients: " + slowest->name + " the longest, " +
            time(*slowest->normWait()) + " from when it comes to the exchange\n";
  return text;
}

std::string tellStages(ArrayRef<report::PageStage> stages) {
  std::string text;
  for (const report::PageStage &it : stages)
    text += "  stage " + std::to_string(it.stage) + " on rank " + std::to_string(it.rank) + ": " +
            it.tellLayers("...") + "; " + rt::showNumberOf(it.parameters, "parameter") + " in " +
            rt::showNumberOf(it.tensors, "tensor") + ", " + rt::showBytes(it.bytes) + "\n";
  return text;
}

nlohmann::ordered_json toReport(ArrayRef<report::PageStage> stages) {
  auto list = nlohmann::ordered_json::array();
  for (const report::PageStage &it : stages)
    list.push_back({{"stage", it.stage},
                    {"rank", it.rank},
                    {"layers", it.layers},
                    {"tensors", it.tensors},
                    {"parameters", it.parameters},
                    {"bytes", it.bytes}});
  return list;
}

} // namespace shoal
