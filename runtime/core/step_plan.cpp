// Counts steps, batches and epochs.
#include "core/step_plan.h"
#include "core/error.h"

namespace shoal::rt {

TrainingPosition StepPlan::after(uint64_t step) const {
  if (perEpoch == 0)
    return {step, 0, 0};
  uint64_t batch = begin.batch + (step - begin.step);
  return {step, begin.epoch + batch / perEpoch, batch % perEpoch};
}

TrainingPosition resumedPosition(const CheckpointIndex &index, const std::string &path, const Dataset &data,
                                 const Options &options) {
  if (options.seed && *options.seed != index.seed)
    badInput("--seed ", *options.seed, " does not go on from ", path, ", whose seed is ", index.seed);
  if (options.shuffle && !index.shuffled)
    badInput("--shuffle does not go on from ", path, ", whose rows are not shuffled");
  // The index holds a batch that an epoch of such data has.
  if (index.position.batch != 0 && (index.rows != data.rows() || index.batchRows != data.batchRows()))
    badInput(path, ": is of the middle of an epoch of ", index.rows, " rows in batches of ", index.batchRows,
             ", got data of ", data.rows(), " rows in batches of ", data.batchRows());
  return index.position;
}

StepPlan planSteps(const Program &program, const Dataset &data, const Options &options, const TrainingPosition &begin) {
  StepPlan plan{begin};
  plan.perEpoch = data.batchesPerEpoch();
  // How long the run is to be, as the user said it or as it is taken.
  std::string length = options.steps     ? cat("--steps ", *options.steps)
                       : !data.batched() ? "one step, as without --steps,"
                       : options.epochs  ? cat("--epochs ", *options.epochs)
                                         : "one epoch, as without --steps and --epochs,";
  auto needRows = [&](uint64_t count) {
    if (plan.perEpoch == 0 && count != 0)
      badInput(length, " needs data, but the input files have 0 rows");
  };
  auto reached = [&] {
    badInput(length, " counts from the beginning of the training, and the checkpoint is of step ", begin.step,
             data.batched() ? cat(" in epoch ", begin.epoch + 1) : "");
  };
  if (!data.batched() || options.steps) {
    plan.total = options.steps.value_or(1);
    if (plan.total < begin.step)
      reached();
    if (!data.batched())
      return plan;
    needRows(plan.steps());
    if (TrainingPosition end = plan.after(plan.total); plan.perEpoch != 0)
      plan.epochs = end.epoch + (end.batch != 0 ? 1 : 0);
    return plan;
  }
  plan.epochs = options.epochs.value_or(1);
  // Outputs of no rows are files of no rows, but nothing is learnt from them.
  if (program.header().mode == Mode::Train)
    needRows(plan.epochs);
  if (plan.epochs < begin.epoch || (plan.epochs == begin.epoch && begin.batch != 0))
    reached();
  uint64_t batches = 0;
  if (__builtin_mul_overflow(plan.epochs - begin.epoch, plan.perEpoch, &batches) ||
      __builtin_add_overflow(begin.step, batches - begin.batch, &plan.total))
    badInput("--epochs ", plan.epochs, " of ", plan.perEpoch, " batches do not fit 64 bits");
  return plan;
}

} // namespace shoal::rt
