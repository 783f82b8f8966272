// A run of the program from the command line to its exit code.
#ifndef SHOAL_RT_CORE_RUN_H
#define SHOAL_RT_CORE_RUN_H

#include "core/options.h"
#include "core/payload.h"
#include "mpi/world.h"

namespace shoal::rt {

// What a rank knows before it meets the others: the program in its own file and its command line.
struct Invocation {
  LoadedPayload payload;
  Options options;
  std::string executable, note;
  std::optional<Error> error; // the ranks agree on it once they have met
};
Invocation readInvocation(int argc, const char *const *argv);

// Collective. Prints errors itself; those that every rank sees are printed once.
int runExecutable(World &world, Invocation invocation);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_RUN_H
