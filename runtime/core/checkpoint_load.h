// --resume: the arguments of a program out of a checkpoint that any plan may have written.
#ifndef SHOAL_RT_CORE_CHECKPOINT_LOAD_H
#define SHOAL_RT_CORE_CHECKPOINT_LOAD_H

#include "core/checkpoint.h"
#include "core/parameters.h"
#include "core/program.h"

namespace shoal::rt {

// Writes this position's boxes of all parameters, buffers and state into the arena. Padding is zero. Exit 2 with the
// first tensor in which the checkpoint's model differs from the program's. State is all there, or begins anew all of it
// (another optimizer), which the summary says.
LoadSummary loadCheckpoint(const Program &program, uint32_t position, Checkpoint &checkpoint, char *arena);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_LOAD_H
