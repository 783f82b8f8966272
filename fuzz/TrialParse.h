// Whether MLIR's parser takes a text, found out in a process of its own. The parser of MLIR 19 frees
// operands and block arguments that it still uses on some texts that it refuses: there the damage ends
// with the child, and a crash in MLIR alone is told apart from one that our code has part in.
#ifndef SHOAL_FUZZ_TRIALPARSE_H
#define SHOAL_FUZZ_TRIALPARSE_H

#include <string>

namespace shoal::fuzz {

enum class Verdict {
  Valid,
  Refused,
  UpstreamFault, // crashed, and from the parser's entry on only MLIR and LLVM were on the stack
  OurFault,
};

struct Trial {
  Verdict verdict;
  std::string report; // of the sanitizer, for a fault
};

/// Runs `parse`, which says whether the text is valid, in a child. What it covers counts as covered here.
Trial tryParse(bool (*parse)(const std::string &text, void *context), const std::string &text, void *context);

/// Whether only MLIR and LLVM stand in the first stack of a sanitizer's report, from the fault down to the
/// parser's entry.
bool isUpstream(const std::string &report);

} // namespace shoal::fuzz

#endif // SHOAL_FUZZ_TRIALPARSE_H
