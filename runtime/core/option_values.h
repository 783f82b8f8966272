// Values of command-line flags: read as a whole, within bounds, or refused with one line.
#ifndef SHOAL_RT_CORE_OPTION_VALUES_H
#define SHOAL_RT_CORE_OPTION_VALUES_H

#include <cstdint>
#include <string>

namespace shoal::rt {

// Decimal digits alone: CLI11 itself would read -1 as a very large count.
uint64_t wholeNumber(const char *flag, const std::string &text, uint64_t least, uint64_t most = UINT64_MAX);

// A finite number from 0 to `most`; `what` is "a number", or of what: "a number of seconds".
double realNumber(const char *flag, const char *what, const std::string &text, double most);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_OPTION_VALUES_H
