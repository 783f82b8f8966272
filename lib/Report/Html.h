// Writes HTML whose elements are closed by construction and whose text is always escaped, and numbers as people
// read them.
#ifndef SHOAL_LIB_REPORT_HTML_H
#define SHOAL_LIB_REPORT_HTML_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace shoal::report {

/// Text that is the same anywhere in HTML: in an element and in a quoted attribute. Bytes that are no UTF-8 and
/// control characters are replaced by U+FFFD.
std::string escapeHtml(llvm::StringRef text);

class Html {
public:
  using Attributes = std::initializer_list<std::pair<llvm::StringRef, std::string>>;

  /// An element, and in it what `body` writes.
  void tag(llvm::StringRef name, Attributes attributes, llvm::function_ref<void()> body);
  /// An element that holds text.
  void tag(llvm::StringRef name, Attributes attributes, llvm::StringRef text);
  /// An element without an end: <meta>, and the shapes of SVG.
  void leaf(llvm::StringRef name, Attributes attributes);
  void text(llvm::StringRef text) { out += escapeHtml(text); }
  /// A constant of the writer's own, as it is: its style and script.
  void raw(llvm::StringLiteral constant) { out += constant; }
  /// Many elements may be long lists: keeps lines short for people who read the source.
  void newline() { out += '\n'; }

  std::string take() { return std::move(out); }

private:
  void open(llvm::StringRef name, Attributes attributes);
  std::string out;
};

/// "1.5 KiB", "0 B"; three digits that count.
std::string showBytes(uint64_t bytes);
/// "1,234,567".
std::string showCount(uint64_t count);
/// "124M", "7.21B"; below 10,000 as it is.
std::string showAmount(uint64_t count);
/// A coordinate of SVG: at most one digit behind the point.
std::string showPoint(double value);
/// "1 tensor", "3 tensors".
std::string showNumberOf(uint64_t count, llvm::StringRef noun);

} // namespace shoal::report

#endif // SHOAL_LIB_REPORT_HTML_H
