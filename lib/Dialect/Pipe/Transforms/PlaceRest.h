// What a pipelined step does beside its stages: where it runs, and when.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H

#include "Messages.h"

#include "llvm/ADT/DenseMap.h"

namespace shoal::pipe {

/// Ranks of the pipeline that have a value; all without.
using Homes = llvm::DenseMap<mlir::Value, llvm::BitVector>;

/// Puts the ops from `begin` on, to the end of the step, on the ranks that have what they read, and brings together
/// what no rank has all of: sums of terms of several ranks, other values by handing them to all.
void placeRest(mlir::Operation *begin, PipeAxis axis, Homes &homes);

/// Orders the ops from `begin` on so that none waits for a message or reduction between stages that it does not need;
/// reductions over other axes move in front of `begin`, behind the last that they read.
void orderRest(mlir::Operation *begin, PipeAxis axis);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H
