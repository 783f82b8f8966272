// The runtime's one exception: a line for the user and the exit code that goes with it.
#ifndef SHOAL_RT_CORE_ERROR_H
#define SHOAL_RT_CORE_ERROR_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace shoal::rt {

inline constexpr int kExitWorkFailed = 1; // the machine or another rank failed us
inline constexpr int kExitBadInput = 2;   // the command line or a file is wrong

struct Error : std::runtime_error {
  Error(int code, const std::string &line) : std::runtime_error(line), code(code) {}
  int code;
};

// The parts of a message, streamed into one string.
template <typename... Parts> std::string cat(const Parts &...parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts> [[noreturn]] void badInput(const Parts &...parts) {
  throw Error(kExitBadInput, cat(parts...));
}

template <typename... Parts> [[noreturn]] void workFailed(const Parts &...parts) {
  throw Error(kExitWorkFailed, cat(parts...));
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_ERROR_H
