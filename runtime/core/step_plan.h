// Which batch each step of a run takes, from where it begins (a checkpoint, or the first row) to its last step.
#ifndef SHOAL_RT_CORE_STEP_PLAN_H
#define SHOAL_RT_CORE_STEP_PLAN_H

#include "core/checkpoint_index.h"
#include "core/dataset.h"
#include "core/options.h"

namespace shoal::rt {

struct StepPlan {
  TrainingPosition begin;
  uint64_t perEpoch = 0; // batches; 0: the data have none
  uint64_t total = 0;    // steps, those before this run included
  uint64_t epochs = 0;   // that these reach into; 0: the data have none

  uint64_t steps() const { return total - begin.step; } // of this run
  // Where the run is after so many steps, of all.
  TrainingPosition after(uint64_t step) const;
};

// Where a run goes on from the checkpoint in `path`. Flags may say again what it says, and nothing else; in the middle
// of an epoch the data must be as they were. Exit 2 otherwise.
TrainingPosition resumedPosition(const CheckpointIndex &index, const std::string &path, const Dataset &data,
                                 const Options &options);

// By --steps and --epochs, which count from the beginning of the training. Exit 2 where they cannot be had.
StepPlan planSteps(const Program &program, const Dataset &data, const Options &options, const TrainingPosition &begin);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_STEP_PLAN_H
