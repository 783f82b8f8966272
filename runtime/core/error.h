// The runtime's one exception: a line for the user and the exit code that goes with it.
#ifndef SHOAL_RT_CORE_ERROR_H
#define SHOAL_RT_CORE_ERROR_H

#include "shoal-rt/exit_codes.h"

#include <sstream>
#include <stdexcept>
#include <string>

namespace shoal::rt {

// One line that a terminal can show: names of files and tensors come from outside, so control
// characters are written as \xNN, and of a very long line the middle is left out.
inline std::string oneLine(const std::string &text) {
  constexpr size_t kEnds = 2000;
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == kEnds && text.size() > 2 * kEnds) {
      i = text.size() - kEnds;
      line += " ... ";
    }
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != 0x7f) {
      line += text[i];
      continue;
    }
    line += "\\x";
    line += "0123456789abcdef"[c >> 4];
    line += "0123456789abcdef"[c & 15];
  }
  return line;
}

// A name or value that comes from a file, for a message: of a long one both ends.
inline std::string shortened(const std::string &text) {
  constexpr size_t kMost = 80, kEnd = 20;
  if (text.size() <= kMost)
    return text;
  return text.substr(0, kMost - kEnd) + " ... " + text.substr(text.size() - kEnd);
}

struct Error : std::runtime_error {
  Error(int code, const std::string &line) : std::runtime_error(oneLine(line)), code(code) {}
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
