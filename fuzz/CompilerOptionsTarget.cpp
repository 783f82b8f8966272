// The command line of shoalc, one argument a line: it is accepted, or it ends with exit code 2, or
// with 0 after --help.
#include "Options.h"
#include "Target.h"

#include <vector>

using namespace shoal;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<std::string> words = {"shoalc"};
  std::string text(reinterpret_cast<const char *>(data), size);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    words.emplace_back(text.substr(at, end - at).c_str()); // an argument ends at a zero
    at = end + 1;
  }
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  CommandLine line;
  std::optional<int> code = parseCommandLine(int(words.size()), argv.data(), line);
  if (code) {
    fuzz::require(*code == 0 || *code == 2, "exit code of the command line must be 0 or 2");
    return 0;
  }
  fuzz::require(!line.input.empty(), "the input must be known"); // a question has no output
  int64_t devices = 1;
  for (const auto &[axis, count] : line.compiler.mesh)
    devices *= count;
  fuzz::require(devices >= 1 && devices <= 1000000, "a mesh must have 1 to 1000000 devices");
  return 0;
}
