// The evaluation that a training run makes between its steps: the loss over a data set of its own, by
// the executable's evaluation program, which works on the parameters where training keeps them.
#ifndef SHOAL_RT_CORE_EVALUATION_H
#define SHOAL_RT_CORE_EVALUATION_H

#include "core/scalar_results.h"
#include "core/session.h"

namespace shoal::rt {

struct EvaluationRecord {
  // Means over the batches. The loss weighs each by the terms it was the mean of (targets that are not
  // ignored), where the program says so; else it weighs, as metrics always do, by its real rows.
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;
  uint64_t rows = 0; // real ones; 0 without batched inputs
  double seconds = 0;
};

class Evaluation {
public:
  // Opens and checks the data. `files` maps each input of the evaluation program to its file.
  Evaluation(const World &world, const Program &program, const shoal_rt_kernel *kernels, uint32_t position,
             const std::map<std::string, std::string> &files);
  Session &session() { return session_; }
  // When the data's rows are known.
  void checkRows() const;

  // Collective: communicators. The arena's windows, if any, are those of training.
  void connect(const Arena &arena);
  void resolve(bool crowded, Beacon &beacon);

  // Collective. One pass over the data, in their order, after so many steps of training. Leaves alone what training
  // keeps from step to step; its inputs are overwritten, which every step fills anew. The means are rank 0's.
  EvaluationRecord run(uint64_t step);

  // No run() after this; what is left are communicators.
  void endSteps() { session_.endSteps(); }

private:
  void addMeans(EvaluationRecord &record, const std::vector<double> &weights) const;

  const World &world_;
  Session session_;
  ScalarResults scalars_;
  Beacon *beacon_ = nullptr;
};

// Throws exit 2 unless `evaluation` may run between the steps of `training` on one arena.
void checkEvaluation(const Program &training, const Program &evaluation);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_EVALUATION_H
