// The prelinked executable that shoalc appends a payload to.
#include "core/error.h"
#include "core/run.h"

#include <csignal>
#include <cstdio>

// Whatever fails after this is told and agreed on inside; only starting MPI can throw.
int main(int argc, char **argv) {
  // A file that hits its size limit is an error of that write, with a line that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    shoal::rt::Invocation invocation = shoal::rt::readInvocation(argc, argv);
    shoal::rt::World world(&argc, &argv, invocation.options.timeout);
    int code = shoal::rt::runExecutable(world, std::move(invocation));
    world.endsWith(code);
    return code;
  } catch (const shoal::rt::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.code;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return shoal::rt::kExitWorkFailed;
  }
}
