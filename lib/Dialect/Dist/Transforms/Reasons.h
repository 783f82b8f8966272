// What reasons of collectives say about the tensors of a bucket.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_REASONS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_REASONS_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringExtras.h"

#include <string>

namespace shoal::dist {

/// "w1, b1, w2, b2"; of many "w1, b1 ... b7 (14 tensors)".
inline std::string listNames(llvm::ArrayRef<llvm::StringRef> names) {
  constexpr size_t kNamed = 4;
  if (names.size() <= kNamed)
    return llvm::join(names, ", ");
  return llvm::join(names.take_front(2), ", ") + " ... " + names.back().str() + " (" + std::to_string(names.size()) +
         " tensors)";
}

/// "gradient of w1", "gradients of w1, b1".
inline std::string listGradients(llvm::ArrayRef<llvm::StringRef> names) {
  return (names.size() == 1 ? "gradient of " : "gradients of ") + listNames(names);
}

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_REASONS_H
