// A run as a timeline: idle times, stashes, transfers.
#include "shoal/Schedule/Simulate.h"

#include "Run.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

namespace shoal::pipe {

double Timeline::getMakespan() const {
  double begin = 0, end = 0;
  bool isFirst = true;
  for (const RankTimeline &rank : ranks) {
    if (rank.spans.empty())
      continue;
    begin = isFirst ? rank.getBegin() : std::min(begin, rank.getBegin());
    end = isFirst ? rank.getEnd() : std::max(end, rank.getEnd());
    isFirst = false;
  }
  return end - begin;
}

double Timeline::getBubble() const {
  double busy = 0, all = getMakespan() * ranks.size();
  for (const RankTimeline &rank : ranks)
    busy += rank.busy;
  return all > 0 ? std::max(0.0, 1 - busy / all) : 0;
}

int64_t Timeline::getTransferBytes() const {
  int64_t bytes = 0;
  for (const Transfer &transfer : transfers)
    bytes += transfer.bytes;
  return bytes;
}

namespace {

/// What a rank holds for its backward passes.
struct Stash {
  int64_t count = 0, bytes = 0, peak = 0, peakBytes = 0;

  void add(const Action &action, const StageCosts &costs) {
    if (action.kind == ActionKind::Forward) {
      ++count;
      bytes += costs.stashBytes;
    } else {
      count -= action.kind != ActionKind::BackwardInput;
      bytes -= action.kind == ActionKind::BackwardWeight ? costs.weightStashBytes : costs.stashBytes;
      if (action.kind == ActionKind::BackwardInput)
        bytes += costs.weightStashBytes;
    }
    peak = std::max(peak, count);
    peakBytes = std::max(peakBytes, bytes);
  }
};

} // namespace

std::optional<Timeline> simulate(const Schedule &schedule, const Costs &costs) {
  Run ran = run(schedule, costs);
  if (!ran.isComplete(schedule))
    return std::nullopt;
  Timeline timeline;
  timeline.shape = schedule.shape;
  for (auto [actions, times] : llvm::zip_equal(schedule.ranks, ran.times)) {
    RankTimeline &rank = timeline.ranks.emplace_back();
    Stash stash;
    bool hasBackward =
        llvm::any_of(actions, [](const Action &it) { return it.isCompute() && it.kind != ActionKind::Forward; });
    for (auto [action, time] : llvm::zip_equal(actions, times)) {
      if (action.isMessage())
        continue;
      rank.spans.push_back({action.kind, action.stage, action.microbatch, time.begin, time.end});
      rank.busy += costs.getDuration(action);
      if (action.isCompute() && hasBackward) // for which it keeps
        stash.add(action, costs.stages[action.stage]);
    }
    rank.peakStash = stash.peak;
    rank.peakBytes = stash.peakBytes;
  }
  timeline.transfers = std::move(ran.transfers);
  // They were found in an order of no meaning.
  llvm::sort(timeline.transfers, [](const Transfer &a, const Transfer &b) {
    auto key = [](const Transfer &it) {
      return std::tuple(it.from, it.begin, it.to, it.backward, it.stage, it.microbatch);
    };
    return key(a) < key(b);
  });
  return timeline;
}

} // namespace shoal::pipe
