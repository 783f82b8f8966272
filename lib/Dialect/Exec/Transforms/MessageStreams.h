// Streams of messages that wait for no others.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_MESSAGESTREAMS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_MESSAGESTREAMS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::exec {

using MessageStreams = llvm::DenseMap<mlir::Operation *, int64_t>;

/// For each dist.send and dist.recv of a step with `dist.async` a stream from `first` on. Both ends of a message have
/// the same one. Ops that each have one partner at a position, as those that passes make, share a stream with their own way
/// alone, so that none waits for another's partner; all that one op of several ways sends or receives is on one stream.
mlir::FailureOr<MessageStreams> findMessageStreams(mlir::func::FuncOp step, dist::MeshAttr mesh, int64_t first);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_MESSAGESTREAMS_H
