// Who may have a mean: a model, until nn-explicit-counts has made it a sum that is divided by a count.
#ifndef SHOAL_DIALECT_NN_IR_MEANS_H
#define SHOAL_DIALECT_NN_IR_MEANS_H

#include "mlir/IR/Operation.h"

namespace shoal::nn {

/// Diagnoses an op that is a mean. What it divides by is the count of the whole, of real rows, which neither a gradient
/// nor a shard nor a kernel sees.
llvm::LogicalResult verifyNoMean(mlir::Operation *op);

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_MEANS_H
