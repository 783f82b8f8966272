// The end of what is printed.
#ifndef SHOAL_RT_CORE_STANDARD_OUTPUT_H
#define SHOAL_RT_CORE_STANDARD_OUTPUT_H

#include "core/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace shoal::rt {

// What was printed has arrived, or the work has failed: a full disk shows no earlier than here.
inline void finishOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    workFailed("stdout: write failed: ", std::strerror(errno));
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_STANDARD_OUTPUT_H
