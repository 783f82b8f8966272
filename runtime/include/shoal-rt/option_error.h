// What a command line that CLI11 cannot parse is told: one line in the words of all other errors, with the value found
// and the value expected, in place of CLI11's own.
#ifndef SHOAL_RT_OPTION_ERROR_H
#define SHOAL_RT_OPTION_ERROR_H

#include <algorithm>
#include <string>

#include <CLI/Error.hpp>

namespace shoal::rt {

inline std::string optionError(const CLI::ParseError &error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  // What stands before, between and behind two parts of the text, if it has them.
  std::string before, between, behind;
  auto has = [&](const std::string &first, const std::string &second = "") {
    size_t at = text.find(first), end = text.find(second, at == text.npos ? at : at + first.size());
    if (at == text.npos || end == text.npos)
      return false;
    before = text.substr(0, at);
    between = text.substr(at + first.size(), end - at - first.size());
    behind = text.substr(end + second.size());
    return true;
  };
  CLI::ExitCodes kind = CLI::ExitCodes(error.get_exit_code()); // its name is at times that of the program
  if (kind == CLI::ExitCodes::ExtrasError && has("not expected: ")) {
    std::string words; // the last comes first
    for (size_t end = behind.size(), at; end != behind.npos; end = at) {
      at = end == 0 ? behind.npos : behind.rfind(' ', end - 1);
      size_t begin = at == behind.npos ? 0 : at + 1;
      words += (words.empty() ? "" : " ") + behind.substr(begin, end - begin);
    }
    return std::string("unknown argument") + (words == behind ? "" : "s") + ", got: " + words;
  }
  if (kind == CLI::ExitCodes::RequiredError && text == "A subcommand is required")
    return "a command is required";
  for (const char *most : {": At least ", ": At Most "})
    if (kind == CLI::ExitCodes::ArgumentMismatch && has(most, " required but received "))
      return before + ": must have " + (most[5] == 'l' ? "at least " : "at most ") + between + " values, got: " + behind;
  if (kind == CLI::ExitCodes::ArgumentMismatch && has(": ", " required ")) {
    if (size_t missing = behind.rfind(" missing"); missing != behind.npos)
      return before + ": must have " + (between == "1" ? "a value" : between + " values") + ", " +
             behind.substr(0, missing) + ", got: " + (between == "1" ? "none" : "too few");
  }
  if (kind == CLI::ExitCodes::ArgumentMismatch && has(" was given a disallowed flag override"))
    return before + ": must have no value";
  if (kind == CLI::ExitCodes::ConversionError && has("Could not convert: ", " = "))
    return between + ": must be a number, got: '" + behind + "'";
  if (kind == CLI::ExitCodes::ValidationError && has(" not in {", "}")) {
    size_t name = before.find(": ");
    std::string choices;
    for (char c : between)
      choices += c == ',' ? ", " : std::string(1, c);
    return before.substr(0, name) + ": must be one of " + choices + ", got: '" + before.substr(name + 2) + "'";
  }
  return text;
}

} // namespace shoal::rt

#endif // SHOAL_RT_OPTION_ERROR_H
