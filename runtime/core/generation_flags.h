// The flags of --generate.
#ifndef SHOAL_RT_CORE_GENERATION_FLAGS_H
#define SHOAL_RT_CORE_GENERATION_FLAGS_H

#include "core/options.h"

namespace CLI {
class App;
}

namespace shoal::rt {

class GenerationFlags {
public:
  // Before the command line is parsed; this must live until it is.
  void addTo(CLI::App &app);
  // Of the help of a program that takes none of them.
  static void hideFrom(CLI::App &app);
  // After: what was asked for, if anything. Exit 2 for what the flags or this program do not allow. `outputs` is what
  // --output names: with --generate that is the tokens, not the program's outputs.
  std::optional<GenerationOptions> read(const CLI::App &app, const Program &program,
                                        const std::map<std::string, std::string> &outputs) const;

private:
  std::string tokens_, prompt_, promptFile_, temperature_, topK_, samples_;
};

// What --output can name with --generate.
inline constexpr const char *kTokensOutput = "tokens";

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_GENERATION_FLAGS_H
