// Which of the exchanges behind the micro-batches the updates wait for.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_NAMENORM_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_NAMENORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::pipe {

/// A number that is summed over the stages and that an update reads is the global norm, whose exchange is N
/// (`exec.scope`) in a timeline. One that is only told, as the loss, is of the update like all that follows the
/// micro-batches.
void nameNorm(mlir::func::FuncOp step, mlir::StringAttr axis);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_NAMENORM_H
