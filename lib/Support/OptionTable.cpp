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

std::string findChoiceFault(llvm::ArrayRef<llvm::StringRef> choices, llvm::StringRef value, llvm::StringRef note) {
  if (llvm::is_contained(choices, value))
    return "";
  return "must be " + joinWithOr(choices) + ", got: " + value.str() + (note.empty() ? "" : "; " + note.str());
}

} // namespace shoal
