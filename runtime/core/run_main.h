// The frame of a program's main: what it throws becomes one line and an exit code.
#ifndef SHOAL_RT_CORE_RUN_MAIN_H
#define SHOAL_RT_CORE_RUN_MAIN_H

#include "core/error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace shoal::rt {

// What was printed has arrived, or the work has failed: a full disk shows no earlier than here.
inline void finishOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    workFailed("stdout: write failed: ", std::strerror(errno));
}

// `before` begins the line, as "shoal-ckpt: "; `run` gives the exit code.
template <typename Run> int runMain(const char *before, Run run) {
  // A file that hits its size limit is an error of that write, with a line that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return run();
  } catch (const Error &error) {
    std::fprintf(stderr, "%serror: %s\n", before, error.what());
    return error.code;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%serror: %s\n", before, oneLine(error.what()).c_str());
    return kExitWorkFailed;
  }
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_RUN_MAIN_H
