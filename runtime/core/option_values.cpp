// Whole and real numbers from the command line.
#include "core/option_values.h"
#include "core/error.h"

#include <charconv>

namespace shoal::rt {

uint64_t wholeNumber(const char *flag, const std::string &text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const char *end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || value < least || value > most)
    badInput(flag, " must be an integer of at least ", least,
             most == UINT64_MAX ? std::string() : cat(" and at most ", most), ", got: '", text, "'");
  return value;
}

double realNumber(const char *flag, const char *what, const std::string &text, double most) {
  double value = 0;
  const char *end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || stop != end || !(value >= 0 && value <= most))
    badInput(flag, " must be ", what, " of at least 0 and at most ", uint64_t(most), ", got: '", text, "'");
  return value;
}

} // namespace shoal::rt
