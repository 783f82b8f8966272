// The command line of shoalc.
#ifndef SHOAL_TOOLS_SHOALC_OPTIONS_H
#define SHOAL_TOOLS_SHOALC_OPTIONS_H

#include "shoal/Pipelines/Pipelines.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal {

/// How far to go and what to write.
enum class Emit { Global, Local, Exec, LLVM, PTX, Object, Executable };

struct CompilerOptions {
  std::string input;
  std::string output;
  std::vector<std::pair<std::string, int64_t>> mesh; // empty: the file's own mesh, or one device
  PlanOptions plan;
  Emit emit = Emit::Executable;
  std::string cpu; // empty: this machine's
  std::string gpuArch = "sm_80";
  std::string report;
  std::string runtime; // empty: beside shoalc
  bool verifyPlan = false;
  std::vector<std::string> planFlags; // given flags that plan a model; a local program takes none
};

/// Parses the command line. Returns the exit code when the program should stop (after --help,
/// or 2 after one line that says what is wrong).
std::optional<int> parseCommandLine(int argc, char **argv, CompilerOptions &options);

} // namespace shoal

#endif // SHOAL_TOOLS_SHOALC_OPTIONS_H
