// Ops outside `nn` that a rank computes alone: position, buckets, scalars that steer control flow.
#ifndef SHOAL_LIB_INTERPRETER_LOCALOPS_H
#define SHOAL_LIB_INTERPRETER_LOCALOPS_H

#include "Rendezvous.h"

namespace shoal::interp {

/// Scalars (index, integers) are tensors of rank 0.
Tensor makeScalar(mlir::Type type, int64_t value);

/// Results of an op that needs no other rank: one with reference semantics, `arith` on scalars,
/// axis_index, all_slice, reshard, pack, unpack. `mesh` is null on one device. Any other op is an
/// error at it.
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateLocal(mlir::Operation *op,
                                                         llvm::ArrayRef<const Tensor *> operands,
                                                         dist::MeshAttr mesh, int64_t position);

} // namespace shoal::interp

#endif // SHOAL_LIB_INTERPRETER_LOCALOPS_H
