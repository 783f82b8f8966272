// Typed access to the fields of a config.json.
#include "ConfigFields.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

namespace shoal::models {

std::string show(const rt::InputJson &value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, rt::InputJson::error_handler_t::replace);
  constexpr size_t kMost = 60;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

ConfigFields::ConfigFields(llvm::StringRef text)
    : parsed(rt::parseJsonObject({text.data(), text.size()})) {
  if (!parsed.problem.empty())
    problem = "the text " + parsed.problem;
}

void ConfigFields::complain(const llvm::Twine &message) {
  if (problem.empty())
    problem = message.str();
}

void ConfigFields::complainOf(llvm::StringRef name, const llvm::Twine &expected,
                              const rt::InputJson &got) {
  complain("'" + name + "' must be " + expected + ", got: " + show(got));
}

const rt::InputJson *ConfigFields::take(llvm::StringRef name) {
  known.insert(name);
  if (!parsed.problem.empty())
    return nullptr;
  auto field = parsed.value.find(name.str());
  return field == parsed.value.end() ? nullptr : &*field;
}

bool ConfigFields::has(llvm::StringRef name) { return take(name) != nullptr; }

int64_t ConfigFields::size(llvm::StringRef name, std::optional<int64_t> absent) {
  const rt::InputJson *field = take(name);
  if (!field) {
    if (!absent)
      complain("'" + name + "' is missing, expected a whole number");
    return absent.value_or(1);
  }
  if (field->is_number_unsigned())
    if (uint64_t value = field->get<uint64_t>(); value >= 1 && value <= uint64_t(rt::kMostSize))
      return int64_t(value);
  complainOf(name, "a whole number from 1 to " + llvm::Twine(rt::kMostSize), *field);
  return 1;
}

std::optional<int64_t> ConfigFields::sizeOrNull(llvm::StringRef name, std::optional<int64_t> absent) {
  const rt::InputJson *field = take(name);
  if (!field)
    return absent;
  return field->is_null() ? std::nullopt : std::optional(size(name));
}

double ConfigFields::number(llvm::StringRef name, double absent, double least, double most) {
  const rt::InputJson *field = take(name);
  if (!field)
    return absent;
  if (field->is_number())
    if (double value = field->get<double>(); value >= least && value <= most)
      return value;
  complainOf(name, "a number from " + show(least) + " to " + show(most), *field);
  return absent;
}

bool ConfigFields::flag(llvm::StringRef name, bool absent) {
  const rt::InputJson *field = take(name);
  if (!field)
    return absent;
  if (field->is_boolean())
    return field->get<bool>();
  complainOf(name, "true or false", *field);
  return absent;
}

std::string ConfigFields::word(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> words,
                               std::optional<llvm::StringRef> absent) {
  const rt::InputJson *field = take(name);
  if (!field && absent)
    return absent->str();
  std::string expected = llvm::join(words, " or ");
  if (!field)
    complain("'" + name + "' is missing, expected " + expected);
  else if (field->is_string() && llvm::is_contained(words, field->get<std::string>()))
    return field->get<std::string>();
  else
    complainOf(name, expected, *field);
  return "";
}

const rt::InputJson *ConfigFields::object(llvm::StringRef name) {
  const rt::InputJson *field = take(name);
  if (!field || field->is_object())
    return field;
  if (!field->is_null())
    complainOf(name, "an object", *field);
  return nullptr;
}

void ConfigFields::mustBe(llvm::StringRef name, const rt::InputJson &value, llvm::StringRef why) {
  const rt::InputJson *field = take(name);
  if (!field || *field == value)
    return;
  std::string expected = show(value);
  if (!why.empty())
    expected += (" (" + why + ")").str();
  complainOf(name, expected, *field);
}

void ConfigFields::mustList(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> words) {
  const rt::InputJson *field = take(name);
  if (!field || field->is_null())
    return;
  bool isRight = field->is_array() && llvm::all_of(*field, [&](const rt::InputJson &item) {
                   return item.is_string() && llvm::is_contained(words, item.get<std::string>());
                 });
  if (!isRight)
    complainOf(name, "a list of " + llvm::join(words, " or "), *field);
}

void ConfigFields::ignore(llvm::ArrayRef<llvm::StringLiteral> names) {
  for (llvm::StringLiteral name : names)
    known.insert(name);
}

bool ConfigFields::finish(std::string &error) {
  if (problem.empty())
    for (const auto &[name, value] : parsed.value.items())
      if (!known.contains(name)) {
        complain("field " + show(name) + " is not supported, got: " + show(value));
        break;
      }
  // The one control character that JSON does not escape.
  error.clear();
  for (char c : problem)
    error += c == 0x7f ? "\\u007f" : std::string(1, c);
  return problem.empty();
}

} // namespace shoal::models
