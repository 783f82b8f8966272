// Makes random ops of a step equal but for what they are given, so that equal layers share their kernels.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_RANDOMIDS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_RANDOMIDS_H

#include "mlir/IR/Block.h"

namespace shoal::exec {

/// Moves the ids of random ops out of them, where ops of one step have several: into the upper words of steps, which
/// one chain of sums over scalars computes.
void moveIdsToSteps(mlir::Block &block);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_RANDOMIDS_H
