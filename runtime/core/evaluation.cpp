// Evaluation between training steps.
#include "core/evaluation.h"
#include "core/error.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <unordered_map>

namespace shoal::rt {
namespace {

// What keeps its contents from step to step; the rest is filled before each.
bool outlivesStep(const Arg &arg) {
  return arg.kind != ArgKind::Input && arg.kind != ArgKind::ValidRows;
}

bool sameText(const Program &a, Str ofA, const Program &b, Str ofB) {
  return a.str(ofA) == b.str(ofB);
}

template <typename Shaped> bool sameDims(const Program &a, const Shaped &ofA, const Program &b, const Shaped &ofB) {
  auto same = [&](const Dim &x, const Dim &y) {
    return x.global == y.global && x.local == y.local &&
           std::ranges::equal(a.axesOf(x), b.axesOf(y));
  };
  return std::ranges::equal(a.dims(ofA), b.dims(ofB), same);
}

// The tensors that each argument holds, by its number.
std::vector<std::vector<const Tensor *>> tensorsByArg(const Program &program) {
  std::vector<std::vector<const Tensor *>> tensors(program.args().size());
  for (const Tensor &tensor : program.tensors())
    if (tensor.kind != TensorKind::Grad)
      tensors[tensor.owner].push_back(&tensor);
  return tensors;
}

} // namespace

void checkEvaluation(const Program &training, const Program &evaluation) {
  auto refuse = [](const auto &...what) { badInput("evaluation program: ", what...); };
  if (training.header().mode != Mode::Train || evaluation.header().mode != Mode::Eval)
    refuse("modes must be 0 and 2, got: ", uint32_t(training.header().mode), " and ",
           uint32_t(evaluation.header().mode));
  if (evaluation.header().arenaBytes > training.header().arenaBytes)
    refuse("its arena must fit that of training, ", training.header().arenaBytes, " bytes, got: ",
           evaluation.header().arenaBytes);
  auto sameAxis = [&](const Axis &a, const Axis &b) {
    return a.size == b.size && sameText(training, a.name, evaluation, b.name);
  };
  if (!std::ranges::equal(training.axes(), evaluation.axes(), sameAxis) ||
      !std::ranges::equal(training.deviceIds(), evaluation.deviceIds()))
    refuse("its mesh must be that of training");
  // Elsewhere its place may be somebody else's.
  std::map<std::pair<Positions, Positions>, bool> known;
  auto isHeldInTraining = [&](const Arg &mine, const Arg &theirs) {
    auto [at, isNew] = known.try_emplace({mine.heldAt, theirs.heldAt}, true);
    for (uint32_t position = 0; isNew && position < training.numPositions() && at->second; ++position)
      at->second = !evaluation.holds(mine, position) || training.holds(theirs, position);
    return at->second;
  };
  auto sameTensor = [&](const Tensor *a, const Tensor *b) {
    return sameText(training, a->name, evaluation, b->name) && a->inBucket == b->inBucket && a->first == b->first &&
           a->begin == b->begin && a->end == b->end && sameDims(training, *a, evaluation, *b);
  };
  auto trained = tensorsByArg(training), evaluated = tensorsByArg(evaluation);
  std::unordered_map<std::string_view, size_t> numbers; // of training's arguments
  for (size_t i = 0; i < training.args().size(); ++i)
    numbers.try_emplace(training.str(training.args()[i].name), i);
  for (size_t i = 0; i < evaluation.args().size(); ++i) {
    const Arg &arg = evaluation.args()[i];
    if (!outlivesStep(arg))
      continue;
    std::string_view name = evaluation.str(arg.name);
    auto found = numbers.find(name);
    if (found == numbers.end() || training.args()[found->second].kind != arg.kind)
      refuse("'", name, "' must be an argument of training");
    const Arg &same = training.args()[found->second];
    const View &mine = evaluation.views()[arg.view], &theirs = training.views()[same.view];
    if (mine.offset != theirs.offset || mine.elements != theirs.elements ||
        mine.dtype != theirs.dtype || !sameDims(training, same, evaluation, arg))
      refuse("'", name, "' must lie where training has it, at ", theirs.offset, ", got: ",
             mine.offset);
    if (!isHeldInTraining(arg, same))
      refuse("'", name, "' must be held only where training holds it");
    if (!std::ranges::equal(trained[found->second], evaluated[i], sameTensor))
      refuse("'", name, "' must hold the tensors that training has in it");
  }
}

Evaluation::Evaluation(const World &world, const Program &program, const shoal_rt_kernel *kernels, uint32_t position,
                       const std::map<std::string, std::string> &files)
    : world_(world), session_(program, kernels, position, files, "--eval-data"),
      scalars_(world, program, position) {}

void Evaluation::checkRows() const {
  if (session_.data().batched() && session_.data().rows() == 0)
    badInput("--eval-data must have at least 1 row, got: 0");
}

void Evaluation::connect(const Arena &arena) {
  session_.setArena(arena);
  session_.connect(LocalComm::Mpi);
}

void Evaluation::resolve(bool crowded, Beacon &beacon) {
  beacon_ = &beacon;
  session_.resolve(crowded, beacon);
}

// `weights`: per batch its real rows.
void Evaluation::addMeans(EvaluationRecord &record, const std::vector<double> &weights) const {
  const Program &program = session_.program();
  const std::vector<double> *losses = nullptr, *lossWeights = &weights;
  double rows = 0;
  for (double weight : weights)
    rows += weight;
  for (uint32_t index = 0; index < program.results().size(); ++index) {
    const Result &result = program.results()[index];
    const std::vector<double> &values = scalars_.of(index);
    if (result.kind == ResultKind::Loss) {
      losses = &values;
    } else if (program.str(result.name) == kLossCountMetric) {
      lossWeights = &values;
    } else if (!values.empty()) {
      double sum = 0;
      for (size_t batch = 0; batch < values.size(); ++batch)
        sum += weights[batch] * values[batch];
      record.metrics.emplace_back(program.str(result.name), sum / rows);
    }
  }
  std::ranges::sort(record.metrics); // by name, as those of steps are
  double terms = 0;
  for (size_t batch = 0; batch < weights.size(); ++batch) {
    record.loss += (*lossWeights)[batch] * (losses ? (*losses)[batch] : 0);
    terms += (*lossWeights)[batch];
  }
  record.loss /= terms;
}

EvaluationRecord Evaluation::run(uint64_t step) {
  auto begin = std::chrono::steady_clock::now();
  const Program &program = session_.program();
  const Dataset &data = session_.data();
  EvaluationRecord record;
  std::vector<double> weights;
  uint64_t batches = data.batched() ? data.batchesPerEpoch() : 1;
  for (uint64_t batch = 0; batch < batches; ++batch) {
    beacon_->beginStep(step, true);
    uint64_t real = session_.fill(0, batch);
    record.rows += real;
    weights.push_back(data.batched() ? double(real) : 1);
    session_.executor().step(
        [&](uint32_t index) { scalars_.onProbe(index, session_.address(program.results()[index].view)); });
  }
  scalars_.collect(batches); // once, so that no rank waits for the next batch
  if (world_.rank() == 0)
    addMeans(record, weights);
  record.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return record;
}

} // namespace shoal::rt
