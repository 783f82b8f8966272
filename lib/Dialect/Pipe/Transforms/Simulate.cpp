// pipe-simulate: prints what schedules take, and writes the timeline.
#include "CostOptions.h"

#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Report/TimelinePage.h"
#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Simulate.h"
#include "shoal/Support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_SIMULATEPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

const char *plural(int64_t count) { return count == 1 ? "" : "s"; }

void print(const Timeline &timeline, raw_ostream &out) {
  const Shape &shape = timeline.shape;
  double makespan = timeline.getMakespan();
  out << "@" << timeline.title << ": " << shape.ranks << " rank" << plural(shape.ranks) << ", " << shape.microbatches
      << " micro-batch" << (shape.microbatches == 1 ? "" : "es") << ", " << shape.chunks << " chunk"
      << plural(shape.chunks) << " per rank\n"
      << "  rank        busy    own idle        idle   bubble  peak stash   stash bytes\n";
  for (auto [index, rank] : llvm::enumerate(timeline.ranks)) {
    double idle = rt::idleTime(makespan, rank.busy);
    out << llvm::format("  %4zu  %10.6g  %10.6g  %10.6g  %6.1f%%  %10lld  %12lld\n", index, rank.busy,
                        rt::idleTime(rank.getEnd() - rank.getBegin(), rank.busy), idle,
                        makespan > 0 ? 100 * idle / makespan : 0, (long long)rank.peakStash, (long long)rank.peakBytes);
  }
  out << llvm::format("  makespan %.6g, bubble %.1f%%, ", makespan, 100 * timeline.getBubble())
      << timeline.transfers.size() << " message" << plural(timeline.transfers.size()) << " of "
      << timeline.getTransferBytes() << " bytes\n";
}

/// Microseconds of a unit; none where it is unknown. Durations without a unit are drawn as milliseconds.
std::optional<double> getMicroseconds(StringRef unit) {
  if (unit == "s")
    return 1e6;
  if (unit == "ms" || unit.empty())
    return 1e3;
  if (unit == "us")
    return 1;
  if (unit == "ns")
    return 1e-3;
  return std::nullopt;
}

class SimulatePass : public WithCosts<impl::SimulatePassBase<SimulatePass>> {
public:
  using WithCosts::WithCosts;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::optional<double> microseconds = getMicroseconds(unit);
    if (!microseconds)
      return fail(module, "unit must be s, ms, us or ns, got: " + unit.getValue());
    // Sums over a schedule's stashes and messages must fit 64 bits.
    constexpr int64_t kMostBytes = int64_t(1) << 40;
    for (const auto *option : {&stashBytes, &weightStashBytes, &messageBytes})
      if (int64_t bytes = *option; bytes < 0 || bytes > kMostBytes)
        return fail(module, option->ArgStr + " must be a number of bytes from 0 to " + Twine(kMostBytes) +
                                ", got: " + Twine(bytes));
    auto schedules = llvm::to_vector(module.getOps<ScheduleOp>());
    if (!(html.empty() && trace.empty()) && schedules.size() != 1)
      return fail(module, "a timeline is written of a module with one pipe.schedule, got: " + Twine(schedules.size()));
    for (ScheduleOp op : schedules)
      if (failed(run(op, *microseconds)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  void fail(Operation *op, const Twine &message) {
    op->emitError() << message;
    signalPassFailure();
  }

  LogicalResult run(ScheduleOp op, double microseconds) {
    Schedule schedule = op.getSchedule();
    if (std::optional<Fault> fault = check(schedule))
      return op.emitError() << fault->message << " (pipe-verify says more)";
    StageCosts bytes;
    bytes.stashBytes = stashBytes;
    bytes.weightStashBytes = weightStashBytes;
    bytes.messageBytes = messageBytes;
    FailureOr<Costs> costs = readCosts(op, schedule.shape, bytes);
    if (failed(costs))
      return failure();
    std::optional<Timeline> timeline = simulate(schedule, *costs);
    assert(timeline && "what is checked runs");
    timeline->title = op.getSymName();
    timeline->unit = unit;
    print(*timeline, llvm::errs());
    if (!html.empty())
      if (std::error_code error = writeOutput(html, report::writeTimelinePage(*timeline)))
        return op.emitError() << "cannot write " << html.getValue() << ": " << error.message();
    if (!trace.empty())
      if (std::error_code error = writeOutput(trace, report::writeChromeTrace(*timeline, microseconds)))
        return op.emitError() << "cannot write " << trace.getValue() << ": " << error.message();
    return success();
  }
};

} // namespace

} // namespace shoal::pipe
