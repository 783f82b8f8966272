// Reads fields of a config.json one by one and remembers which, so that what is left over in the end
// is what nobody honours.
#ifndef SHOAL_LIB_MODELS_CONFIGFIELDS_H
#define SHOAL_LIB_MODELS_CONFIGFIELDS_H

#include "shoal-rt/json_input.h"
#include "shoal-rt/most_size.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <optional>
#include <string>

namespace shoal::models {

/// A value on one line, as a file would write it, cut to what a message can hold.
std::string show(const rt::InputJson &value);

/// Accessors return something harmless after a problem, of which the first is kept.
///
/// A field that is null is there and says null, which is not the default that Python's config classes have for an
/// absent one: sizeOrNull takes it for what it means, every other accessor of a value refuses it as any wrong value.
class ConfigFields {
public:
  explicit ConfigFields(llvm::StringRef text);

  /// A whole number from 1 to rt::kMostSize; without `absent` the field must be there.
  int64_t size(llvm::StringRef name, std::optional<int64_t> absent = std::nullopt);
  /// A whole number as above, or none where the file says null; `absent` may be none, too.
  std::optional<int64_t> sizeOrNull(llvm::StringRef name, std::optional<int64_t> absent);
  /// A number in [least, most].
  double number(llvm::StringRef name, double absent, double least, double most);
  bool flag(llvm::StringRef name, bool absent);
  /// One of a few words; without `absent` the field must be there. Empty after a problem.
  std::string word(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> words,
                   std::optional<llvm::StringRef> absent = std::nullopt);
  /// A field that is an object; null when it is absent or says null.
  const rt::InputJson *object(llvm::StringRef name);
  bool has(llvm::StringRef name);

  /// The field must be absent or `value`: what else it may say has no counterpart here.
  void mustBe(llvm::StringRef name, const rt::InputJson &value, llvm::StringRef why = "");
  /// The field must be absent, null or a list of such words.
  void mustList(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> words);
  void ignore(llvm::ArrayRef<llvm::StringLiteral> names);
  void complain(const llvm::Twine &message);

  /// Whether all went well and no field is left over; otherwise false with one line in `error`.
  bool finish(std::string &error);

private:
  /// The field, marked as known; no pointer when it is absent.
  const rt::InputJson *take(llvm::StringRef name);
  void complainOf(llvm::StringRef name, const llvm::Twine &expected, const rt::InputJson &got);

  rt::ParsedObject parsed;
  llvm::StringSet<> known;
  std::string problem;
};

} // namespace shoal::models

#endif // SHOAL_LIB_MODELS_CONFIGFIELDS_H
