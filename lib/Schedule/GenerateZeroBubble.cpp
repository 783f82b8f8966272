// Schedules whose backward pass is split, so that the gradients of weights fill what would be bubbles.
#include "Generate.h"

#include <algorithm>

namespace shoal::pipe {

namespace {

/// Per chunk the next micro-batch of F, I and W.
class RankBuilder {
public:
  RankBuilder(const Shape &shape, int64_t rank, std::vector<Action> &actions)
      : shape(shape), rank(rank), actions(actions) {}

  void forward(int64_t chunk = 0) { add(ActionKind::Forward, chunk); }
  void input(int64_t chunk = 0) { add(ActionKind::BackwardInput, chunk); }
  void weight(int64_t chunk = 0) { add(ActionKind::BackwardWeight, chunk); }
  int64_t count(ActionKind kind, int64_t chunk = 0) const { return next[chunk][unsigned(kind)]; }

private:
  /// Published orders are of at least as many micro-batches as fill the pipeline; of fewer they are what is left.
  void add(ActionKind kind, int64_t chunk) {
    int64_t microbatch = next[chunk][unsigned(kind)]++;
    if (microbatch < shape.microbatches)
      actions.push_back(Action::compute(kind, shape.getStage(rank, chunk), microbatch));
  }
  const Shape &shape;
  int64_t rank;
  std::vector<Action> &actions;
  int64_t next[2][unsigned(ActionKind::BackwardWeight) + 1] = {};
};

Schedule makeEmpty(const Shape &shape, int64_t peak) {
  return {shape, std::vector<std::vector<Action>>(shape.ranks), std::vector<int64_t>(shape.ranks, peak)};
}

/// 1F1B with `hops` forwards per rank behind it, whose W come as late as all ranks can stash alike.
Schedule makeHandcrafted(const Shape &shape, int64_t hops, int64_t peak) {
  Schedule schedule = makeEmpty(shape, std::min(peak, shape.microbatches));
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    RankBuilder builder(shape, rank, schedule.ranks[rank]);
    int64_t warmup = std::min(hops * (shape.ranks - 1 - rank), shape.microbatches);
    int64_t late = hops * rank; // backwards in front of the first W
    for (int64_t step = 0; step < shape.microbatches + warmup; ++step) {
      if (step < shape.microbatches)
        builder.forward();
      if (step < warmup)
        continue;
      builder.input();
      if (step - warmup >= late)
        builder.weight();
    }
    while (builder.count(ActionKind::BackwardWeight) < shape.microbatches)
      builder.weight();
  }
  return schedule;
}

Schedule makeVee(const Shape &shape) {
  int64_t ranks = shape.ranks, microbatches = std::max(2 * ranks - 1, shape.microbatches);
  Schedule schedule = makeEmpty(shape, 2 * std::min(ranks, shape.microbatches));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    RankBuilder builder(shape, rank, schedule.ranks[rank]);
    auto backward = [&](int64_t chunk) {
      builder.input(chunk);
      builder.weight(chunk);
    };
    // Warm-up: until the first micro-batch has come back along the second chunks.
    for (int64_t i = 0; i < 2 * (ranks - rank) - 1; ++i)
      builder.forward(0);
    for (int64_t i = 0; i < rank; ++i) {
      builder.forward(1);
      builder.forward(0);
    }
    for (int64_t i = 0; i < ranks - rank; ++i) {
      builder.forward(1);
      backward(1);
    }
    auto forwards = [&](int64_t chunk) { return builder.count(ActionKind::Forward, chunk); };
    while (forwards(1) < forwards(0) || forwards(0) < microbatches) {
      if (forwards(0) < microbatches)
        builder.forward(0);
      backward(0);
      builder.forward(1);
      backward(1);
    }
    for (int64_t i = 0; i < rank; ++i) {
      builder.input(0);
      builder.input(1);
    }
    for (int64_t i = 0; i < ranks - rank; ++i)
      backward(0);
    for (int64_t chunk : {1, 0})
      while (builder.count(ActionKind::BackwardWeight, chunk) < microbatches)
        builder.weight(chunk);
  }
  return schedule;
}

} // namespace

std::optional<Schedule> generateZbH1(const Shape &shape, const GenerateOptions &, std::string &) {
  return makeHandcrafted(shape, 1, shape.ranks);
}

std::optional<Schedule> generateZbH2(const Shape &shape, const GenerateOptions &options, std::string &) {
  int64_t peak = 2 * shape.ranks - 1;
  return takeShortest(makeHandcrafted(shape, 2, peak), peak, options);
}

std::optional<Schedule> generateZbV(const Shape &shape, const GenerateOptions &options, std::string &) {
  return takeShortest(makeVee(shape), 2 * shape.ranks, options);
}

} // namespace shoal::pipe
