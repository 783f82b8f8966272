// What a sum over micro-batches or stages is made of.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_SUMTERMS_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_SUMTERMS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace shoal::dist {

/// The terms of a sum that nobody reads, but for `reader`. Each is added to what is there, and none to another first: adds between, which
/// only one op reads, fall away. What is added to itself is one term: 2^n ways lead through n such adds.
llvm::SmallVector<mlir::Value> collectTerms(mlir::Value whole, mlir::Operation *reader = nullptr);

/// The stages of a pipeline (`pipe.stage`) that a sum gets terms from, in order; none in a program that is not cut.
/// Gradients of one bucket have the same.
llvm::SmallVector<int64_t> findStages(mlir::Value sum);

/// Adds a term of micro-batch `number` to a sum over micro-batches, which is what the term is on its way to: its storage
/// is workspace, whatever that of the sum is. The op is marked as `dist.running_sum`.
mlir::Operation *addToRunningSum(mlir::OpBuilder &b, mlir::Value sum, mlir::Value term, mlir::Attribute number);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_SUMTERMS_H
