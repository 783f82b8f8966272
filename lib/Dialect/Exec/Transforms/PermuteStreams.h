// Streams of permutations that are waited for later.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PERMUTESTREAMS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PERMUTESTREAMS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::exec {

/// A stream has a communicator of its own at run time: a program with more in flight queues what is left.
inline constexpr unsigned kMaxPermuteStreams = 16;

/// For each dist.permute_start of a step a stream from `first` on. None stands behind a reduction, nor behind another
/// one that is in flight, which it is until its dist.wait; those that exchange between the same positions one after
/// another share a stream.
llvm::DenseMap<mlir::Operation *, int64_t> findPermuteStreams(mlir::func::FuncOp step, int64_t first);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PERMUTESTREAMS_H
