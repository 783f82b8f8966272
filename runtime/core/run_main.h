// The frame of a program's main: what it throws becomes one line and an exit code.
#ifndef SHOAL_RT_CORE_RUN_MAIN_H
#define SHOAL_RT_CORE_RUN_MAIN_H

#include "core/error.h"
#include "core/standard_output.h"
#include "shoal-rt/standard_streams.h"

#include <csignal>
#include <cstdio>

namespace shoal::rt {

// `before` begins the line, as "shoal-ckpt: "; `run` gives the exit code.
template <typename Run> int runMain(const char *before, Run run) {
  openStandardStreams();
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
