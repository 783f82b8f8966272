// The step functions of a module, which are no kernels: what is trained or inferred, and the evaluation
// that may stand beside training.
#ifndef SHOAL_DIALECT_EXEC_TRANSFORMS_STEPFUNCTION_H
#define SHOAL_DIALECT_EXEC_TRANSFORMS_STEPFUNCTION_H

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::exec {

inline bool isEvaluation(mlir::func::FuncOp step) {
  return step->hasAttr(nn::kEvaluationAttr);
}

/// One or two, each with a body of one block; with two, one of them is an evaluation. Emits an error
/// when there is none or one too many.
inline mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>> findSteps(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::func::FuncOp> steps;
  for (auto func : module.getOps<mlir::func::FuncOp>()) {
    if (isKernel(func))
      continue;
    for (mlir::func::FuncOp other : steps)
      if (isEvaluation(func) == isEvaluation(other)) {
        auto diag = func.emitOpError()
                    << "a program has one step function, and one of evaluation; this is a second one";
        diag.attachNote(other.getLoc()) << "the first one is here";
        return diag;
      }
    if (!func.getBody().hasOneBlock())
      return func.emitOpError() << "the step function must have a body of one block, got: "
                                << func.getBody().getBlocks().size();
    steps.push_back(func);
  }
  if (steps.empty())
    return module.emitOpError() << "holds no step function";
  return steps;
}

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_TRANSFORMS_STEPFUNCTION_H
