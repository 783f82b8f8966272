// Which ops of a training step are its forward pass, its backward pass and its update, by what they are for; how often
// they run.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_STEPPARTS_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_STEPPARTS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace shoal::dist {

/// The ops that the loss and the outputs depend on; all that results depend on where the function has neither.
llvm::DenseSet<mlir::Operation *> findForwardOps(mlir::FunctionOpInterface func);

/// What a step computes beside gradients and what is made of these: its forward pass with metrics and new values of
/// buffers; everything of a function without gradients.
llvm::DenseSet<mlir::Operation *> findModelOps(mlir::FunctionOpInterface func);

/// How often an op runs in a step: once per micro-batch inside of one.
int64_t countRuns(mlir::Operation *op);

class StepParts {
public:
  explicit StepParts(mlir::FunctionOpInterface step);

  enum Part { Forward, Backward, Update };
  /// By part, as users read it.
  static constexpr const char *kNames[] = {"the forward pass", "the backward pass", "the update"};
  /// Forward is whatever the loss needs, backward what gradients need beyond. A function without gradients is forward.
  /// Where stages hand each other messages, which no operand follows, ops are of the part that their action is of
  /// (origin::kScope).
  Part get(mlir::Operation *op) const {
    if (auto found = ofStages.find(op); found != ofStages.end())
      return found->second;
    if (!hasGradients() || forward.contains(op))
      return Forward;
    return backward.contains(op) ? Backward : Update;
  }
  bool hasGradients() const { return !backward.empty(); }

private:
  llvm::DenseSet<mlir::Operation *> forward, backward;
  llvm::DenseMap<mlir::Operation *, Part> ofStages;
};

/// Diagnoses an op that computes a value again (`nn.recompute`) and that the forward pass reads: it has become one with
/// what it repeats, and nothing is saved.
llvm::LogicalResult verifyRecompute(mlir::FunctionOpInterface func);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_STEPPARTS_H
