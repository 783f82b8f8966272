// What shoal-ckpt does with a checkpoint.
#ifndef SHOAL_RT_CORE_CHECKPOINT_TOOLS_H
#define SHOAL_RT_CORE_CHECKPOINT_TOOLS_H

#include "core/checkpoint.h"

#include <string>

namespace shoal::rt {

// What it holds, for people to read.
std::string inspectCheckpoint(const Checkpoint &checkpoint);

// Reads all of it: sizes and checksums of the files, and that they hold the boxes of the index, which hold every
// element once. Exit 2 with the first fault; else a line about what was read.
std::string verifyCheckpoint(Checkpoint &checkpoint);

// Writes whole tensors into one safetensors file, in the shapes of --dump-params: those of the model, with state the
// optimizer's, too. Checks the files first. A line about what was written.
std::string mergeCheckpoint(Checkpoint &checkpoint, const std::string &path, bool withState);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_TOOLS_H
