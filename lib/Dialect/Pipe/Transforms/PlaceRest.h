// What a pipelined step does beside its stages: where it runs, and when.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H

#include "Homes.h"
#include "Messages.h"

namespace shoal::pipe {

/// The ops of a step beside its stages.
struct Rest {
  mlir::Operation *stages; ///< The first op of the stages; what stands in front of it is not of them.
  mlir::Operation *begin;  ///< What follows them.
};

/// Puts the ops beside the stages on the ranks that have what they read, and brings together what no rank has all of:
/// sums of terms of several ranks, other values by handing them to all. What replaces an argument goes to every rank of
/// the argument. `homes` holds those of the arguments and of what stages hand on.
void placeRest(Rest rest, PipeAxis axis, Homes &homes);

/// Orders the ops from `begin` on so that none waits for a message or reduction between stages that it does not need;
/// reductions over other axes move in front of `begin`, behind the last that they read.
void orderRest(mlir::Operation *begin, PipeAxis axis);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H
