// The command line of shoalc.
#ifndef SHOAL_TOOLS_SHOALC_OPTIONS_H
#define SHOAL_TOOLS_SHOALC_OPTIONS_H

#include "shoal/Driver/Driver.h"

#include <optional>
#include <string>

namespace shoal {

struct CommandLine {
  CompilerOptions compiler; // named as the input
  std::string input;
  std::string output;
  std::string report, timeline; // empty: none
  std::string runtime; // empty: beside shoalc
};

/// Parses the command line. Returns the exit code when the program should stop (after --help,
/// or 2 after one line that says what is wrong).
std::optional<int> parseCommandLine(int argc, char **argv, CommandLine &line);

} // namespace shoal

#endif // SHOAL_TOOLS_SHOALC_OPTIONS_H
