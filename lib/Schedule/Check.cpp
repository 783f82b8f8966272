// Completeness, order on each rank, dependencies between ranks, stashes.
#include "Check.h"
#include "Run.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace shoal::pipe {

std::string place(const Schedule &schedule, int64_t rank, const Action &action) {
  return "rank " + std::to_string(rank) + ": " + format(action, schedule.shape, rank);
}

Fault describeCycle(const Schedule &schedule, llvm::StringRef what, const std::vector<int64_t> &next,
                    const std::vector<size_t> &at, const std::vector<std::string> &why) {
  int64_t rank = llvm::find_if(next, [](int64_t it) { return it >= 0; }) - next.begin();
  for (size_t i = 0; i < next.size(); ++i) // who waits for the circle may not be in it
    rank = next[rank];
  Fault fault{what.str(), {}, rank};
  int64_t first = rank;
  do {
    fault.message += place(schedule, rank, schedule.ranks[rank][at[rank]]) + " -> ";
    fault.notes.push_back(why[rank]);
    rank = next[rank];
  } while (rank != first);
  fault.message += place(schedule, rank, schedule.ranks[rank][at[rank]]);
  return fault;
}

namespace {

enum Seen : uint8_t { kForward = 1, kBackward = 2, kInput = 4, kWeight = 8 };

class Checker {
public:
  Checker(const Schedule &schedule, bool hasGradients)
      : schedule(schedule), shape(schedule.shape), hasGradients(hasGradients) {}

  std::optional<Fault> check() {
    if (std::string fault = findFault(shape); !fault.empty())
      return Fault{fault, {}};
    if (int64_t(schedule.ranks.size()) != shape.ranks)
      return Fault{"the schedule needs a list per rank (" + std::to_string(shape.ranks) +
                       "), got: " + std::to_string(schedule.ranks.size()),
                   {}};
    seen.assign(shape.getStages() * shape.microbatches, 0);
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      if (auto fault = checkOrder(rank))
        return fault;
    if (auto fault = checkComplete())
      return fault;
    if (auto fault = checkOptimizer())
      return fault;
    if (auto fault = checkDependencies())
      return fault;
    if (schedule.hasMessages())
      if (auto fault = checkMessages(schedule))
        return fault;
    return checkPeak();
  }

private:
  Fault refuse(int64_t rank, const Action &action, const std::string &reason) const {
    return {place(schedule, rank, action) + " " + reason, {}, rank};
  }

  std::optional<Fault> checkOrder(int64_t rank) {
    bool hasNorm = false, hasUpdate = false;
    for (const Action &action : schedule.ranks[rank]) {
      if (action.kind == ActionKind::Norm || action.kind == ActionKind::Update) {
        bool isNorm = action.kind == ActionKind::Norm;
        if (isNorm ? hasNorm : hasUpdate)
          return refuse(rank, action, "stands twice; a step has one");
        if (isNorm && hasUpdate)
          return refuse(rank, action, "stands behind U, which reads the norm");
        (isNorm ? hasNorm : hasUpdate) = true;
        continue;
      }
      if (!shape.hasStage(action.stage) || action.microbatch < 0 || action.microbatch >= shape.microbatches)
        return refuse(rank, action,
                      "must be of one of " + std::to_string(shape.getStages()) + " stages and " +
                          std::to_string(shape.microbatches) + " micro-batches");
      if (int64_t owner = shape.getRank(action.stage); owner != rank)
        return refuse(rank, action,
                      "is of stage " + std::to_string(action.stage) + ", which lies on rank " + std::to_string(owner));
      if (!action.isCompute())
        continue;
      if (hasNorm || hasUpdate)
        return refuse(rank, action,
                      std::string("stands behind ") + (hasUpdate ? "U" : "N") +
                          ", which needs every gradient of the rank");
      if (auto fault = checkCompute(rank, action))
        return fault;
    }
    return std::nullopt;
  }

  std::optional<Fault> checkCompute(int64_t rank, const Action &action) {
    uint8_t &entry = seen[int64_t(action.stage) * shape.microbatches + action.microbatch];
    uint8_t bit = 1 << unsigned(action.kind);
    auto other = [&](ActionKind kind) {
      return format(Action::compute(kind, action.stage, action.microbatch), shape, rank);
    };
    if (entry & bit)
      return refuse(rank, action,
                    "stands twice" +
                        std::string(action.kind == ActionKind::Forward ? "" : "; its gradients would be summed twice"));
    if (bit != kForward && !(entry & kForward))
      return refuse(rank, action, "stands before " + other(ActionKind::Forward) + ", or that is missing");
    if ((bit == kBackward && entry & (kInput | kWeight)) || (bit & (kInput | kWeight) && entry & kBackward))
      return refuse(rank, action, "is backward once more: either B, or I and W");
    if (bit == kWeight && !(entry & kInput))
      return refuse(rank, action, "stands before " + other(ActionKind::BackwardInput) + ", or that is missing");
    entry |= bit;
    return std::nullopt;
  }

  std::optional<Fault> checkComplete() const {
    if (!hasGradients && llvm::all_of(seen, [](uint8_t entry) { return entry == kForward; }))
      return std::nullopt;
    for (int64_t stage = 0; stage < shape.getStages(); ++stage)
      for (int64_t microbatch = 0; microbatch < shape.microbatches; ++microbatch) {
        uint8_t entry = seen[stage * shape.microbatches + microbatch];
        if (entry == (kForward | kBackward) || entry == (kForward | kInput | kWeight))
          continue;
        int64_t rank = shape.getRank(stage);
        ActionKind missing = !(entry & kForward) ? ActionKind::Forward
                             : entry & kInput    ? ActionKind::BackwardWeight
                                                 : ActionKind::Backward;
        std::string reason =
            missing == ActionKind::Forward ? " is missing"
            : missing == ActionKind::Backward
                ? " is missing (or I and W)"
                : " is missing: the gradients of micro-batch " + std::to_string(microbatch) + " never reach the sum";
        return Fault{place(schedule, rank, Action::compute(missing, stage, microbatch)) + reason, {}, rank};
      }
    return std::nullopt;
  }

  /// All ranks take part in the norm, and all of them update or none.
  std::optional<Fault> checkOptimizer() const {
    for (ActionKind kind : {ActionKind::Norm, ActionKind::Update}) {
      auto has = [&](const std::vector<Action> &actions) {
        return llvm::any_of(actions, [&](const Action &action) { return action.kind == kind; });
      };
      for (int64_t rank = 1; rank < shape.ranks; ++rank)
        if (bool first = has(schedule.ranks[0]); has(schedule.ranks[rank]) != first)
          return Fault{place(schedule, first ? 0 : rank, {kind}) + " has no counterpart on rank " +
                           std::to_string(first ? rank : 0) +
                           (kind == ActionKind::Norm ? ": all ranks exchange the norm" : ": all ranks update"),
                       {},
                       first ? 0 : rank};
    }
    return std::nullopt;
  }

  std::optional<Fault> checkDependencies() const {
    Schedule bare{shape, schedule.ranks, {}};
    for (std::vector<Action> &actions : bare.ranks)
      llvm::erase_if(actions, [](const Action &action) { return action.isMessage(); });
    Run ran = run(bare, Costs::uniform(shape));
    if (ran.isComplete(bare))
      return std::nullopt;
    std::vector<int64_t> next(shape.ranks, -1);
    std::vector<size_t> at(shape.ranks, 0);
    std::vector<std::string> why(shape.ranks);
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      at[rank] = ran.getDone(rank);
      if (at[rank] == bare.ranks[rank].size())
        continue;
      const Action &action = bare.ranks[rank][at[rank]];
      if (action.kind == ActionKind::Norm) { // for a rank that has not come
        next[rank] = findAbsent(bare, ran);
        why[rank] = place(bare, rank, action) + " waits for all ranks";
        continue;
      }
      std::optional<Product> need = getNeed(action, shape);
      next[rank] = shape.getRank(need->stage);
      ActionKind kind = need->backward ? ActionKind::BackwardInput : ActionKind::Forward;
      if (need->backward && !(seen[need->stage * shape.microbatches + need->microbatch] & kInput))
        kind = ActionKind::Backward;
      size_t done = ran.getDone(next[rank]);
      why[rank] = place(bare, rank, action) + " waits for " +
                  place(bare, next[rank], Action::compute(kind, need->stage, need->microbatch)) +
                  ", which stands behind " + format(bare.ranks[next[rank]][done], shape, next[rank]);
    }
    return describeCycle(bare, "the order of actions has a cycle: ", next, at, why);
  }

  /// A rank that has not come to the norm, where another waits in it.
  int64_t findAbsent(const Schedule &bare, const Run &ran) const {
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      if (size_t done = ran.getDone(rank);
          done < bare.ranks[rank].size() && bare.ranks[rank][done].kind != ActionKind::Norm)
        return rank;
    return -1;
  }

  std::optional<Fault> checkPeak() const {
    if (schedule.peak.empty())
      return std::nullopt;
    if (int64_t(schedule.peak.size()) != shape.ranks)
      return Fault{"the peak needs one number per rank (" + std::to_string(shape.ranks) +
                       "), got: " + std::to_string(schedule.peak.size()),
                   {}};
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      int64_t live = 0;
      for (const Action &action : schedule.ranks[rank]) {
        live += action.kind == ActionKind::Forward;
        live -= action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeight;
        if (live > schedule.peak[rank])
          return refuse(rank, action,
                        "is the stash of " + std::to_string(live) +
                            " micro-batches at once, above the stated peak of " + std::to_string(schedule.peak[rank]));
      }
    }
    return std::nullopt;
  }

  const Schedule &schedule;
  const Shape &shape;
  bool hasGradients; // has the step
  std::vector<uint8_t> seen; // by stage and micro-batch
};

} // namespace

std::optional<Fault> check(const Schedule &schedule, bool hasGradients) {
  return Checker(schedule, hasGradients).check();
}

std::vector<int64_t> measurePeak(const Schedule &schedule) {
  std::vector<int64_t> peaks;
  for (const std::vector<Action> &actions : schedule.ranks) {
    int64_t live = 0, peak = 0;
    for (const Action &action : actions) {
      live += action.kind == ActionKind::Forward;
      live -= action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeight;
      peak = std::max(peak, live);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

} // namespace shoal::pipe
