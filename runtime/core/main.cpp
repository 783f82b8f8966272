// The prelinked executable that shoalc appends a payload to.
#include "core/run.h"
#include "core/run_main.h"

using namespace shoal::rt;

// Whatever fails after this is told and agreed on inside; only starting MPI can throw.
int main(int argc, char **argv) {
  return runMain("", [&] {
    Invocation invocation = readInvocation(argc, argv);
    World world(&argc, &argv, invocation.options.timeout);
    int code = runExecutable(world, std::move(invocation));
    world.endsWith(code);
    return code;
  });
}
