// Options as rows of a table: what an option is called, where its value lies, which values it takes. A
// command line, a textual pipeline and a pass parse and check by the same row.
#ifndef SHOAL_SUPPORT_OPTIONTABLE_H
#define SHOAL_SUPPORT_OPTIONTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace shoal {

/// Which numbers an option takes: `says` follows "must be" in messages, `shows` is short, for --help.
struct NumberRule {
  llvm::StringLiteral says, shows;
  bool (*holds)(double);
};

/// The shortest digits that read back as the number.
std::string shortestDigits(double value);
/// "a, b or c".
std::string joinWithOr(llvm::ArrayRef<llvm::StringRef> names);

/// "must be A or B, got: C; NOTE" for a value that is none of the choices; empty when it is one.
std::string findChoiceFault(llvm::ArrayRef<llvm::StringRef> choices, llvm::StringRef value, llvm::StringRef note);

template <typename Struct> struct OptionRow {
  template <typename T> using Access = std::function<T &(Struct &)>;
  using Member = std::variant<Access<bool>, Access<int64_t>, Access<double>, Access<std::string>,
                              Access<std::vector<std::string>>>;

  llvm::StringRef name; // as in textual pipelines
  Member member;
  llvm::StringRef help;
  const NumberRule *rule = nullptr;          // of a number; none: any
  llvm::ArrayRef<llvm::StringRef> choices = {}; // of a string; none: any
  llvm::StringRef flag = {}; // of shoalc without "--", where that has another name; rows that share one
                             // are its comma-separated values
  llvm::StringRef note = {}; // of a string: why what one may look for is no choice

  /// Whether the default is none of the values that the option takes: it says that the option is not in use.
  bool isOffByDefault() const {
    Struct defaults;
    return std::visit(
        [&](const auto &access) {
          const auto &value = access(defaults);
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
            return rule && !rule->holds(double(value));
          else if constexpr (std::is_same_v<T, std::string>)
            return !choices.empty() && !llvm::is_contained(choices, value);
          return false;
        },
        member);
  }

  bool isDefault(Struct values) const {
    Struct defaults;
    return std::visit([&](const auto &access) { return access(values) == access(defaults); }, member);
  }

  /// The value as it is written behind the option; empty for one that is on or off.
  std::string show(Struct values) const {
    return std::visit(
        [&](const auto &access) -> std::string {
          const auto &value = access(values);
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>)
            return digits(value);
          else if constexpr (std::is_same_v<T, std::string>)
            return value;
          return "";
        },
        member);
  }

  /// Which rule the option's value breaks, as "must be RULE, got: VALUE"; empty when none. The default
  /// is always right.
  std::string findFault(Struct values) const {
    if (isDefault(values))
      return "";
    Struct defaults;
    return std::visit(
        [&](const auto &access) -> std::string {
          const auto &value = access(values);
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
            if (rule && !rule->holds(double(value)))
              return "must be " + rule->says.str() + ", got: " + digits(value);
          } else if constexpr (std::is_same_v<T, std::string>) {
            std::vector<llvm::StringRef> all;
            if (const std::string &none = access(defaults); isOffByDefault() && !none.empty())
              all.push_back(none);
            all.insert(all.end(), choices.begin(), choices.end());
            if (!choices.empty())
              return findChoiceFault(all, value, note);
          }
          return "";
        },
        member);
  }

private:
  static std::string digits(double value) { return shortestDigits(value); }
  static std::string digits(int64_t value) { return std::to_string(value); }
};

} // namespace shoal

#endif // SHOAL_SUPPORT_OPTIONTABLE_H
