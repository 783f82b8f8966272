// The command line of a compiled program.
#ifndef SHOAL_RT_CORE_OPTIONS_H
#define SHOAL_RT_CORE_OPTIONS_H

#include "core/program.h"
#include "core/sampling.h"
#include "mpi/local_comm.h"

#include <map>
#include <optional>
#include <string>

namespace shoal::rt {

// --generate, and what goes with it.
struct GenerationOptions {
  uint64_t tokens = 0;            // after the prompt
  std::string prompt, promptFile; // one of the two
  SamplingRule rule;
  uint64_t samples = 1;
  std::string tokensFile; // empty: text on stdout
};

struct Options {
  std::optional<std::string> text; // of --help or --version: print it and do nothing else
  std::map<std::string, std::string> data;    // input name, file
  std::map<std::string, std::string> evalData; // input name, file; empty: no evaluation
  std::optional<uint64_t> evalEvery;           // steps; none: at the end of each epoch
  std::map<std::string, std::string> outputs; // output name, file
  std::optional<uint64_t> steps, epochs;
  std::optional<uint64_t> seed; // none: 0, or that of the checkpoint
  bool shuffle = false;
  std::string load, dumpParams, dumpGrads; // files; empty: not asked for
  std::string save, resume; // folders of checkpoints
  std::optional<uint64_t> saveEvery, keep;
  std::string metrics, report;
  std::optional<uint64_t> logEvery;
  int threads = 1;
  LocalComm localComm = LocalComm::Auto;
  bool noProgress = false;
  std::string trace;
  uint64_t traceSteps = 20;
  std::string timeline;
  std::optional<uint64_t> timelineStep; // none: the last one
  bool stopOnNan = false;
  std::map<uint32_t, double> delays; // MPI rank, milliseconds before each step
  double timeout = 600; // seconds a rank waits for others; 0: as long as it takes
  bool print = false;
  std::optional<GenerationOptions> generation;
};

// Throws exit 2 for what the flags or this program do not allow. `evaluation` is null where the
// executable has none.
Options parseOptions(int argc, const char *const *argv, const Program &program,
                     const Program *evaluation = nullptr);

// "data=4,tensor=2", or "one device".
std::string meshText(const Program &program);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_OPTIONS_H
