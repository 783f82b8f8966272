// The guard before MLIR's parser, which recurses once per bracket of its input and so overflows
// the stack on a file that is nested deeply enough. Every tool that parses a file asks here first.
#ifndef SHOAL_SUPPORT_MODELTEXT_H
#define SHOAL_SUPPORT_MODELTEXT_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace shoal {

/// Where a text cannot be parsed safely, and which rule it breaks.
struct ModelTextProblem {
  unsigned line = 1, column = 1;
  std::string message;
};

/// Looks at brackets, aliases and sums of `text`; no grammar beyond that. Bytecode is no text.
std::optional<ModelTextProblem> checkModelText(llvm::StringRef text);

} // namespace shoal

#endif // SHOAL_SUPPORT_MODELTEXT_H
