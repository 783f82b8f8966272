// The pair of programs that work on one arena: training, and the evaluation that runs between its steps.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_EVALUATION_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_EVALUATION_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// Whether an argument keeps its contents from step to step; others are filled before each.
bool outlivesStep(ArgOp argument);

/// Part of `exec-verify`: both programs mean the same by what they share, and evaluation leaves what
/// training keeps as it is.
mlir::LogicalResult verifyEvaluation(Programs pair);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_EVALUATION_H
