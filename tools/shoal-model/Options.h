// The command line of shoal-model.
#ifndef SHOAL_TOOLS_SHOAL_MODEL_OPTIONS_H
#define SHOAL_TOOLS_SHOAL_MODEL_OPTIONS_H

#include "shoal/Models/Models.h"

#include <optional>
#include <string>

namespace shoal {

enum class Family { Gpt2, Llama };

struct ModelCommandLine {
  Family family = Family::Gpt2;
  std::string config, output = "-";
  models::BatchShape batch = {1, 1};
  models::Dropout dropout = models::Dropout::Config;
};

/// Parses the command line. Returns the exit code when the program should stop (after --help,
/// or 2 after one line that says what is wrong).
std::optional<int> parseCommandLine(int argc, char **argv, ModelCommandLine &line);

} // namespace shoal

#endif // SHOAL_TOOLS_SHOAL_MODEL_OPTIONS_H
