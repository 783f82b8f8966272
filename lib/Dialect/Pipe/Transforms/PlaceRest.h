// What a pipelined step does beside its stages: where it runs, and when.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H

#include "Messages.h"

#include "shoal/Schedule/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::pipe {

/// Ranks of the pipeline that have a value; all without.
using Homes = llvm::DenseMap<mlir::Value, llvm::BitVector>;

/// The ops of a step beside its stages.
struct Rest {
  mlir::Operation *stages; ///< The first op of the stages; what stands in front of it is not of them.
  mlir::Operation *begin;  ///< What follows them.
};

llvm::BitVector getHome(const Homes &homes, mlir::Value value, unsigned ranks);
llvm::BitVector getHomeOfOperands(const Homes &homes, mlir::Operation *op, unsigned ranks);

/// Whether an add of values on these ranks is one of terms that no rank has all of.
bool isSpread(const llvm::BitVector &lhs, const llvm::BitVector &rhs);

/// The ranks of the arguments that the step replaces: those that have the new value. `loop` is the region over
/// micro-batches, not yet unrolled.
Homes placeArguments(mlir::func::FuncOp func, dist::AccumulateOp loop, const Shape &shape, PipeAxis axis);

/// Puts the ops beside the stages on the ranks that have what they read, and brings together what no rank has all of:
/// sums of terms of several ranks, other values by handing them to all.
void placeRest(Rest rest, PipeAxis axis, Homes &homes);

/// Orders the ops from `begin` on so that none waits for a message or reduction between stages that it does not need;
/// reductions over other axes move in front of `begin`, behind the last that they read.
void orderRest(mlir::Operation *begin, PipeAxis axis);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_PLACEREST_H
