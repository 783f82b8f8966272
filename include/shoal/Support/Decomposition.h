// An op replaced by the ops it is made of, for passes that then go through these one by one.
#ifndef SHOAL_SUPPORT_DECOMPOSITION_H
#define SHOAL_SUPPORT_DECOMPOSITION_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace shoal {

struct Decomposition {
  llvm::SmallVector<mlir::Value> values; // one per result of the op
  /// What was built for it, in order, and what is put among it later.
  llvm::iterator_range<mlir::Block::iterator> parts;
};

/// Builds ops that compute the results of `op`, in front of it; `build` returns the results. Fails where
/// it does, and when it returns another number of values.
inline llvm::FailureOr<Decomposition> decomposeBefore(
    mlir::Operation *op, mlir::OpBuilder &builder,
    llvm::function_ref<llvm::FailureOr<llvm::SmallVector<mlir::Value>>(mlir::OpBuilder &)> build) {
  mlir::Operation *before = op->getPrevNode();
  builder.setInsertionPoint(op);
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> values = build(builder);
  if (failed(values) || values->size() != op->getNumResults())
    return mlir::failure();
  mlir::Block::iterator first = before ? std::next(before->getIterator()) : op->getBlock()->begin();
  return Decomposition{std::move(*values), {first, op->getIterator()}};
}

} // namespace shoal

#endif // SHOAL_SUPPORT_DECOMPOSITION_H
