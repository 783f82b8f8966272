// What a run tells while it runs: a line that rewrites itself on a terminal, plain lines
// elsewhere, and the metrics file. Only rank 0 has one.
#ifndef SHOAL_RT_CORE_PROGRESS_H
#define SHOAL_RT_CORE_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::rt {

struct StepRecord {
  uint64_t step = 0;  // from 1
  bool isFirst = false; // of this run
  uint64_t epoch = 0; // from 1
  uint64_t rows = 0;  // real rows of its batch
  std::optional<double> loss;
  std::vector<std::pair<std::string, double>> metrics;
};

struct EvaluationRecord; // core/evaluation.h
struct SavedCheckpoint;  // core/checkpoint_writer.h

class Progress {
public:
  // `doneSteps` of `totalSteps` are those of an earlier run. `metricsPath` may be empty. Exit 2 when it cannot be
  // written.
  Progress(uint64_t doneSteps, uint64_t totalSteps, uint64_t totalEpochs, uint64_t logEvery, bool terminal,
           const std::string &metricsPath);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void start();
  void step(const StepRecord &record);
  // After so many steps, in the epoch of the last one (0: none). Its time is not that of training.
  void evaluation(uint64_t step, uint64_t epoch, const EvaluationRecord &record);
  // While a checkpoint is being written, of which rank 0 has done `part`; and when it is there. Nor is this time that
  // of training.
  void saving(uint64_t step, double part);
  void saved(uint64_t step, const SavedCheckpoint &saved, double seconds);
  void finish(); // exit 1 when the metrics file is incomplete

private:
  double seconds() const;
  void writeMetrics(const StepRecord &record);
  void writeLine(const std::string &line);
  void tell(const std::string &line); // a line that stays
  void log(const std::string &line);  // on stdout

  uint64_t doneSteps_, totalSteps_, totalEpochs_, logEvery_;
  bool terminal_;
  std::string metricsPath_;
  std::FILE *metrics_ = nullptr;
  bool madeMetrics_ = false, started_ = false;
  std::chrono::steady_clock::time_point begin_;
  double lastDrawn_ = -1;
  double apart_ = 0; // seconds of evaluations and checkpoints
  uint64_t rows_ = 0;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PROGRESS_H
