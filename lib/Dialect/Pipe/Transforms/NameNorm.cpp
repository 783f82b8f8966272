// The exchange of the norm by name; see NameNorm.h.
#include "NameNorm.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Schedule/Schedule.h"

using namespace mlir;

namespace shoal::pipe {

/// Whether a new value of an argument is made of what `op` makes.
static bool reachesUpdate(func::FuncOp step, Operation *op) {
  DenseSet<Value> reached(op->result_begin(), op->result_end());
  Operation *end = step.getBody().front().getTerminator();
  for (Operation *later = op->getNextNode(); later != end; later = later->getNextNode())
    if (later->walk([&](Operation *inner) {
          return llvm::any_of(inner->getOperands(), [&](Value it) { return reached.contains(it); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        }).wasInterrupted())
      reached.insert(later->result_begin(), later->result_end());
  for (OpOperand &result : end->getOpOperands())
    if (reached.contains(result.get()) &&
        step.getResultAttr(result.getOperandNumber(), nn::NNDialect::kUpdatesAttr))
      return true;
  return false;
}

void nameNorm(func::FuncOp step, StringAttr axis) {
  auto scope = StringAttr::get(step.getContext(), getScope({.kind = ActionKind::Norm}));
  auto update = StringAttr::get(step.getContext(), getScope({.kind = ActionKind::Update}));
  for (Operation &op : step.getBody().front().without_terminator()) {
    if (!dist::isTensorCollective(&op) || op.getAttr(exec::ExecDialect::kScopeAttr) != update)
      continue;
    auto collective = cast<dist::CollectiveOpInterface>(op);
    if (collective.communicates() && llvm::is_contained(collective.getAxesAttr().getAxes(), axis) &&
        cast<RankedTensorType>(op.getResult(0).getType()).getRank() == 0 && reachesUpdate(step, &op))
      op.setAttr(exec::ExecDialect::kScopeAttr, scope);
  }
}

} // namespace shoal::pipe
