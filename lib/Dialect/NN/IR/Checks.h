// What verifiers of several files ask.
#ifndef SHOAL_LIB_DIALECT_NN_IR_CHECKS_H
#define SHOAL_LIB_DIALECT_NN_IR_CHECKS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace shoal::nn {

/// The tensor has the dimension.
llvm::LogicalResult verifyDim(mlir::Operation *op, int64_t dim, mlir::RankedTensorType type);

/// Input and result of ops that change one dimension: all others, and the element type, agree.
llvm::LogicalResult verifyOneDimChanges(mlir::Operation *op, int64_t dim, mlir::RankedTensorType input,
                                        mlir::RankedTensorType result);

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_IR_CHECKS_H
