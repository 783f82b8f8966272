// Streams of messages that wait for no others.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_MESSAGESTREAMS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_MESSAGESTREAMS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::exec {

using MessageStreams = llvm::DenseMap<mlir::Operation *, int64_t>;

/// For each dist.send and dist.recv of a step with `dist.async` a stream from `first` on. Both ends of a message have
/// the same one. No position has messages to two others, or to one and from another, on one stream, so that none waits
/// for another's partner.
mlir::FailureOr<MessageStreams> findMessageStreams(mlir::func::FuncOp step, dist::MeshAttr mesh, int64_t first);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_MESSAGESTREAMS_H
