// The step function of a module: the one function that is no kernel.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_STEPFUNCTION_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_STEPFUNCTION_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// A body of one block is guaranteed. Emits an error when there is none or a second one.
inline mlir::FailureOr<mlir::func::FuncOp> findStep(mlir::ModuleOp module) {
  mlir::func::FuncOp step;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (isKernel(func))
      continue;
    if (step) {
      auto diag = func.emitOpError() << "a program has one step function, this is a second one";
      diag.attachNote(step.getLoc()) << "the first one is here";
      return diag;
    }
    step = func;
  }
  if (!step)
    return module.emitOpError() << "holds no step function";
  if (!step.getBody().hasOneBlock())
    return step.emitOpError() << "the step function must have a body of one block, got: "
                              << step.getBody().getBlocks().size();
  return step;
}

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_STEPFUNCTION_H
