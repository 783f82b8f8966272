// The table of schedules, and those with a whole backward pass.
#include "Generate.h"
#include "Check.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace shoal::pipe {

namespace {

/// Adds F or B of the next micro-batch of a chunk.
class RankBuilder {
public:
  RankBuilder(Schedule &schedule, int64_t rank)
      : shape(schedule.shape), actions(schedule.ranks[rank]), rank(rank), forwards(shape.chunks, 0),
        backwards(shape.chunks, 0) {}

  void forward(int64_t chunk = 0) { add(ActionKind::Forward, chunk, forwards[chunk]++); }
  void backward(int64_t chunk = 0) { add(ActionKind::Backward, chunk, backwards[chunk]++); }

private:
  void add(ActionKind kind, int64_t chunk, int64_t microbatch) {
    actions.push_back(Action::compute(kind, shape.getStage(rank, chunk), microbatch));
  }
  const Shape &shape;
  std::vector<Action> &actions;
  int64_t rank;
  std::vector<int64_t> forwards, backwards;
};

Schedule makeEmpty(const Shape &shape) {
  return {shape, std::vector<std::vector<Action>>(shape.ranks), std::vector<int64_t>(shape.ranks)};
}

/// `warmup(rank)` forwards, then one forward and one backward in turn, then the backwards that are left.
template <typename Warmup> Schedule makeOneByOne(const Shape &shape, Warmup warmup) {
  Schedule schedule = makeEmpty(shape);
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    RankBuilder builder(schedule, rank);
    int64_t ahead = std::min<int64_t>(warmup(rank), shape.microbatches);
    for (int64_t step = 0; step < shape.microbatches + ahead; ++step) {
      if (step < shape.microbatches)
        builder.forward();
      if (step >= ahead)
        builder.backward();
    }
    schedule.peak[rank] = std::min(ahead + 1, shape.microbatches);
  }
  return schedule;
}

std::optional<Schedule> generateNaive(const Shape &shape, const GenerateOptions &, std::string &) {
  return makeOneByOne(shape, [](int64_t) { return 0; });
}

std::optional<Schedule> generateGpipe(const Shape &shape, const GenerateOptions &, std::string &) {
  return makeOneByOne(shape, [&](int64_t) { return shape.microbatches; });
}

std::optional<Schedule> generate1F1B(const Shape &shape, const GenerateOptions &, std::string &) {
  return makeOneByOne(shape, [&](int64_t rank) { return shape.ranks - 1 - rank; });
}

/// Chunks take turns, each for a round of micro-batches.
std::optional<Schedule> generateInterleaved(const Shape &shape, const GenerateOptions &, std::string &error) {
  int64_t rounds = std::max<int64_t>(1, shape.microbatches / shape.ranks);
  if (shape.microbatches % rounds) {
    error = "interleaved works in max(1, M / P) rounds of equally many micro-batches: M must be divisible by " +
            std::to_string(rounds) + " with " + std::to_string(shape.ranks) +
            " ranks, got: " + std::to_string(shape.microbatches) + " micro-batches; take " +
            std::to_string(shape.microbatches / rounds * rounds) + ", or 1f1b";
    return std::nullopt;
  }
  Schedule schedule = makeEmpty(shape);
  int64_t round = shape.microbatches / rounds, all = shape.chunks * shape.microbatches;
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    RankBuilder builder(schedule, rank);
    int64_t warmup = std::min((shape.chunks - 1) * round + 2 * (shape.ranks - 1 - rank), all);
    for (int64_t step = 0; step < all + warmup; ++step) {
      if (step < all)
        builder.forward(step / round % shape.chunks);
      if (step >= warmup)
        builder.backward(shape.chunks - 1 - (step - warmup) / round % shape.chunks);
    }
    schedule.peak[rank] = std::min(warmup + 1, all);
  }
  return schedule;
}

struct Entry {
  llvm::StringRef name;
  Generator generator;
  int64_t leastChunks = 1, mostChunks = 1;
  Placement placement = Placement::Loop;
};

constexpr int64_t kAnyChunks = kMostWork;
const Entry kEntries[] = {
    {"naive", generateNaive},
    {"gpipe", generateGpipe},
    {"1f1b", generate1F1B},
    {"interleaved", generateInterleaved, 1, kAnyChunks},
    {"zb-h1", generateZbH1},
    {"zb-h2", generateZbH2},
    {"zb-v", generateZbV, 2, 2, Placement::Vee},
};

const Entry *findEntry(llvm::StringRef name) {
  const Entry *entry = llvm::find_if(kEntries, [&](const Entry &it) { return it.name == name; });
  return entry == std::end(kEntries) ? nullptr : entry;
}

} // namespace

std::optional<Optimizer> symbolizeOptimizer(llvm::StringRef name) {
  if (name == "none")
    return Optimizer::None;
  if (name == "update")
    return Optimizer::Update;
  if (name == "norm")
    return Optimizer::NormAndUpdate;
  return std::nullopt;
}

llvm::ArrayRef<llvm::StringRef> getScheduleNames() {
  static const std::vector<llvm::StringRef> names = [] {
    std::vector<llvm::StringRef> all;
    for (const Entry &entry : kEntries)
      all.push_back(entry.name);
    return all;
  }();
  return names;
}

int64_t getDefaultChunks(llvm::StringRef name) {
  const Entry *entry = findEntry(name);
  return entry && entry->mostChunks > 1 ? 2 : 1;
}

std::optional<Fault> setOptimizer(Schedule &schedule, Optimizer optimizer) {
  bool needsNorm = optimizer == Optimizer::NormAndUpdate, needsUpdate = optimizer != Optimizer::None;
  for (auto [rank, actions] : llvm::enumerate(schedule.ranks))
    for (const Action &action : actions) {
      if (action.kind == ActionKind::Norm && !needsNorm)
        return Fault{place(schedule, rank, action) +
                         " is the exchange of the gradients' norm, for which no update of this "
                         "step waits; leave it out, or clip by the norm (--clip-grad-norm)",
                     {},
                     int64_t(rank)};
      if (action.kind == ActionKind::Update && !needsUpdate)
        return Fault{
            place(schedule, rank, action) + " is an update, which this step has not; leave it out", {}, int64_t(rank)};
    }
  // Those that stand on some ranks alone are for `check` to tell.
  auto lacks = [&](ActionKind kind) {
    return llvm::none_of(schedule.ranks, [&](const std::vector<Action> &actions) {
      return llvm::any_of(actions, [&](const Action &action) { return action.kind == kind; });
    });
  };
  bool lacksNorm = needsNorm && lacks(ActionKind::Norm), lacksUpdate = needsUpdate && lacks(ActionKind::Update);
  for (std::vector<Action> &actions : schedule.ranks) {
    if (lacksNorm)
      actions.insert(llvm::find_if(actions, [](const Action &it) { return it.kind == ActionKind::Update; }),
                     {ActionKind::Norm});
    if (lacksUpdate)
      actions.push_back({ActionKind::Update});
  }
  return std::nullopt;
}

std::optional<Schedule> generate(llvm::StringRef name, Shape shape, const GenerateOptions &options,
                                 std::string &error) {
  const Entry *entry = findEntry(name);
  if (!entry) {
    error = "schedule must be one of " + llvm::join(getScheduleNames(), ", ") + ", got: " + name.str();
    return std::nullopt;
  }
  shape.placement = entry->placement;
  error = findFault(shape);
  if (!error.empty())
    return std::nullopt;
  if (shape.chunks < entry->leastChunks || shape.chunks > entry->mostChunks) {
    error = name.str() + " takes " + std::to_string(entry->leastChunks) +
            (entry->leastChunks == 1 ? " chunk" : " chunks") + " per rank, got: " + std::to_string(shape.chunks) +
            (entry->mostChunks == 1 ? "; interleaved takes any number, zb-v 2" : "; interleaved takes any number");
    return std::nullopt;
  }
  if (options.costs && int64_t(options.costs->stages.size()) != shape.getStages()) {
    error = "costs must be of each stage (" + std::to_string(shape.getStages()) +
            "), got: " + std::to_string(options.costs->stages.size());
    return std::nullopt;
  }
  std::optional<Schedule> schedule = entry->generator(shape, options, error);
  if (schedule && options.isForwardOnly) {
    for (std::vector<Action> &actions : schedule->ranks)
      llvm::erase_if(actions, [](const Action &action) { return action.kind != ActionKind::Forward; });
    schedule->peak.clear();
  } else if (schedule) {
    setOptimizer(*schedule, options.optimizer);
  }
  return schedule;
}

} // namespace shoal::pipe
