// A run of the program from the command line to its exit code.
#ifndef SHOAL_RT_CORE_RUN_H
#define SHOAL_RT_CORE_RUN_H

#include "mpi/world.h"

namespace shoal::rt {

// Collective. Prints errors itself; those that every rank sees are printed once.
int runExecutable(World &world, int argc, const char *const *argv);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_RUN_H
