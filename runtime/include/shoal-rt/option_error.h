// What a command line that CLI11 cannot parse is told: one line in the words of all other errors, with the value found
// and the value expected, in place of CLI11's own.
#ifndef SHOAL_RT_OPTION_ERROR_H
#define SHOAL_RT_OPTION_ERROR_H

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace shoal::rt {

inline std::string optionError(const CLI::App &app, const CLI::ParseError &error) {
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
  std::vector<std::string> words = app.remaining(/*recurse=*/true);
  std::string unknown;
  for (const std::string &word : words)
    unknown += (unknown.empty() ? "" : " ") + (word.find(' ') == word.npos ? word : "'" + word + "'");
  if (kind == CLI::ExitCodes::ExtrasError && !words.empty())
    return std::string("unknown argument") + (words.size() == 1 ? "" : "s") + ", got: " + unknown;
  if (kind == CLI::ExitCodes::RequiredError && text == "A subcommand is required")
    return words.empty() ? "a command is required" : "a known command is required, got: '" + words.front() + "'";
  for (const char *most : {": At least ", ": At Most "})
    if (kind == CLI::ExitCodes::ArgumentMismatch && has(most, " required but received "))
      return before + ": must have " + (most[5] == 'l' ? "at least " : "at most ") + between + (between == "1" ? " value, got: " : " values, got: ") + behind;
  if (kind == CLI::ExitCodes::ArgumentMismatch && has(": ", " required ")) {
    if (size_t missing = behind.rfind(" missing"); missing != behind.npos)
      return before + ": must have " + (between == "1" ? "a value" : between + " values") + ", " +
             behind.substr(0, missing) + ", got: " + (between == "1" ? "none" : "too few");
  }
  if (kind == CLI::ExitCodes::ArgumentMismatch && has(" was given a disallowed flag override"))
    return before + ": must have no value";
  if (kind == CLI::ExitCodes::ConversionError && has("Could not convert: ", " = "))
    return between + ": must be a number, got: '" + behind + "'";
  // The value found stands in front, and may be of any words.
  if (size_t last = text.rfind(" not in {"); kind == CLI::ExitCodes::ValidationError && last != text.npos) {
    before = text.substr(0, last);
    between = text.substr(last + 9, text.rfind('}') - last - 9);
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
