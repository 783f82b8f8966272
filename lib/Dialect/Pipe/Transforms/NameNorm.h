// Which of the exchanges behind the micro-batches the updates wait for.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_NAMENORM_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_NAMENORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::pipe {

/// Where an optimizer's update reads a root of a number that is summed over the stages, that is the global norm, and
/// its exchange is N (`exec.scope`) in a timeline. All else that follows the micro-batches is of the update: sums that are
/// told or that buffers keep, as the loss, a norm that clips nothing, the gradient of what several stages share.
void nameNorm(mlir::func::FuncOp step, mlir::StringAttr axis);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_NAMENORM_H
