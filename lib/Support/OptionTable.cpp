// How the values of options are written in messages.
#include "shoal/Support/OptionTable.h"

#include <charconv>
#include <iterator>

namespace shoal {

std::string shortestDigits(double value) {
  char digits[32];
  return std::string(digits, std::to_chars(std::begin(digits), std::end(digits), value).ptr);
}

std::string joinWithOr(llvm::ArrayRef<llvm::StringRef> names) {
  std::string text;
  for (auto [i, name] : llvm::enumerate(names)) {
    if (i)
      text += i + 1 == names.size() ? " or " : ", ";
    text += name;
  }
  return text;
}

} // namespace shoal
