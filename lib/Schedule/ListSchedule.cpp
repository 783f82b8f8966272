// List scheduling within a limit of memory, as the automatic schedules of the zero bubble papers: ranks decide in the
// order of time.
#include "Generate.h"
#include "Run.h"

#include "shoal/Schedule/Check.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace shoal::pipe {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class ListScheduler {
public:
  ListScheduler(const Shape &shape, const Costs &costs, int64_t limit, const ListRule &rule)
      : shape(shape), costs(costs), limit(limit), rule(rule), free(shape.ranks, 0), live(shape.ranks, 0),
        stages(shape.getStages()), arrived(getNumProducts(shape), kNever) {
    schedule.shape = shape;
    schedule.ranks.resize(shape.ranks);
    schedule.peak.assign(shape.ranks, std::min(limit, shape.chunks * shape.microbatches));
  }

  std::optional<Schedule> take() {
    for (int64_t rank = 0; rank < shape.ranks; ++rank)
      turns.push({0, rank});
    while (!turns.empty()) {
      auto [time, rank] = turns.top();
      turns.pop();
      if (time >= free[rank])
        decide(rank, time);
    }
    for (const std::vector<Action> &actions : schedule.ranks)
      if (int64_t(actions.size()) != 3 * shape.chunks * shape.microbatches)
        return std::nullopt;
    return std::move(schedule);
  }

private:
  struct Progress {
    int64_t next[3] = {}; // F, I, W
  };
  static unsigned slot(ActionKind kind) {
    return kind == ActionKind::Forward ? 0 : kind == ActionKind::BackwardInput ? 1 : 2;
  }

  /// When the next F, I or W of a stage can begin; kNever where that is not yet known.
  double getStart(ActionKind kind, int64_t stage) const {
    const Progress &progress = stages[stage];
    int64_t microbatch = progress.next[slot(kind)];
    if (microbatch == shape.microbatches)
      return kNever;
    if (kind != ActionKind::Forward && microbatch >= progress.next[slot(kind) - 1])
      return kNever;
    std::optional<Product> need = getNeed(Action::compute(kind, stage, microbatch), shape);
    return need ? arrived[need->getIndex(shape)] : 0;
  }

  /// A forward must leave room for one of every later chunk, without which the first micro-batch could not come back.
  bool hasRoom(int64_t rank, int64_t chunk) const { return live[rank] + (shape.chunks - 1 - chunk) < limit; }

  void decide(int64_t rank, double time) {
    // Later stages first: they are nearer to the end of what is begun.
    double soonest = kNever;
    auto find = [&](ActionKind kind) -> int64_t {
      for (int64_t chunk = shape.chunks - 1; chunk >= 0; --chunk) {
        if (kind == ActionKind::Forward && !hasRoom(rank, chunk))
          continue;
        double start = getStart(kind, shape.getStage(rank, chunk));
        if (start <= time)
          return shape.getStage(rank, chunk);
        soonest = std::min(soonest, start);
      }
      return -1;
    };
    ActionKind order[] = {ActionKind::BackwardInput, ActionKind::Forward};
    if (rule.forwardFirst)
      std::swap(order[0], order[1]);
    for (ActionKind kind : order)
      if (int64_t stage = find(kind); stage >= 0)
        return perform(rank, kind, stage, time);
    double wait = soonest;
    int64_t stage = find(ActionKind::BackwardWeight);
    if (stage >= 0 && !(wait - time < rule.patience * costs.stages[stage].backwardWeight))
      return perform(rank, ActionKind::BackwardWeight, stage, time);
    if (wait < kNever)
      turns.push({wait, rank});
  }

  void perform(int64_t rank, ActionKind kind, int64_t stage, double time) {
    Action action = Action::compute(kind, stage, stages[stage].next[slot(kind)]++);
    schedule.ranks[rank].push_back(action);
    live[rank] += (kind == ActionKind::Forward) - (kind == ActionKind::BackwardWeight);
    free[rank] = time + costs.getDuration(action);
    if (std::optional<Product> product = getProduct(action, shape)) {
      double arrival = free[rank] + (crosses(*product, shape) ? costs.getTransfer(product->stage, product->backward) : 0);
      arrived[product->getIndex(shape)] = arrival;
      int64_t reader = shape.getRank(getReader(*product));
      turns.push({std::max(arrival, free[reader]), reader});
    }
    turns.push({free[rank], rank});
  }

  const Shape &shape;
  const Costs &costs;
  int64_t limit;
  ListRule rule;
  std::vector<double> free;  // per rank, when it can decide
  std::vector<int64_t> live; // per rank, stashes
  std::vector<Progress> stages;
  std::vector<double> arrived; // by product
  std::priority_queue<std::pair<double, int64_t>, std::vector<std::pair<double, int64_t>>, std::greater<>> turns;
  Schedule schedule;
};

} // namespace

std::optional<Schedule> listSchedule(const Shape &shape, const Costs &costs, int64_t limit, const ListRule &rule) {
  return ListScheduler(shape, costs, limit, rule).take();
}

Schedule takeShortest(Schedule published, int64_t limit, const GenerateOptions &options) {
  const Shape &shape = published.shape;
  Costs costs = options.costs ? *options.costs : Costs::uniform(shape);
  auto measure = [&](const Schedule &schedule) {
    Run ran = run(schedule, costs);
    double longest = 0, last = 0;
    for (const std::vector<ActionTime> &times : ran.times) {
      longest = std::max(longest, times.back().end - times.front().begin);
      last = std::max(last, times.back().end);
    }
    return options.optimizer == Optimizer::NormAndUpdate ? last : longest;
  };
  // No order is shorter than a rank's work.
  double work = 0;
  for (const std::vector<Action> &actions : published.ranks) {
    double busy = 0;
    for (const Action &action : actions)
      busy += costs.getDuration(action);
    work = std::max(work, busy);
  }
  // Sums of durations differ in the last digits.
  constexpr double kClearly = 1 - 1e-9;
  double least = measure(published);
  Schedule shortest = std::move(published);
  for (bool forwardFirst : {false, true})
    for (double patience : {0.0, 0.5, 1.0}) {
      if (work >= least * kClearly)
        break;
      std::optional<Schedule> candidate = listSchedule(shape, costs, limit, {forwardFirst, patience});
      if (!candidate)
        continue;
      if (double length = measure(*candidate); length < least * kClearly) {
        least = length;
        shortest = std::move(*candidate);
      }
    }
  shortest.peak = measurePeak(shortest);
  return shortest;
}

} // namespace shoal::pipe
