// What a run takes from the probes of its program, and where that goes: the loss and metrics into the
// step's record, outputs into files and onto standard output, gradients of the first step into a file.
#ifndef SHOAL_RT_CORE_OUTPUTS_H
#define SHOAL_RT_CORE_OUTPUTS_H

#include "core/file.h"
#include "core/options.h"
#include "core/progress.h"
#include "core/scalar_results.h"
#include "core/session.h"
#include "mpi/world.h"

namespace shoal::rt {

class Outputs {
public:
  // Opens the files, which rank 0 alone writes. Exit 2 where a result cannot be what the command line
  // wants of it.
  Outputs(World &world, const Session &session, const Options &options, uint64_t totalSteps);

  // When the host may read a result.
  void onProbe(uint32_t result, const StepRecord &record);
  // Collective, at the end of a step, of which rank 0's record is then complete.
  void write(StepRecord &record);
  // At the end of the run: output files get their names.
  void commit();

private:
  // An output file that grows batch by batch, on every rank; the file is rank 0's.
  struct File {
    const Result *result;
    std::string path;
    std::unique_ptr<OutputFile> file;
    uint64_t dataStart = 0;
  };

  void open(const Result &result, const std::string &path);
  void writeFiles(uint64_t batch, uint64_t valid);
  void print(uint64_t batch, uint64_t valid);
  void writeGrads();
  void addScalars(StepRecord &record) const;

  World &world_;
  const Session &session_;
  const Program &program_;
  const Options &options_;
  uint64_t totalSteps_;
  std::vector<File> files_;
  std::unique_ptr<OutputFile> gradsFile_;
  ScalarResults scalars_;
  std::map<uint32_t, std::vector<char>> held_; // results copied at their probe
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_OUTPUTS_H
