// The exchange of the norm by name; see NameNorm.h.
#include "NameNorm.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Schedule/Schedule.h"

using namespace mlir;

namespace shoal::pipe {

static bool isScalar(Value value) { return cast<RankedTensorType>(value.getType()).getRank() == 0; }

/// Whether an optimizer's update is made of what `op` makes.
static bool reachesUpdate(Operation *op) {
  DenseSet<Operation *> seen;
  SmallVector<Operation *> work{op};
  while (!work.empty()) {
    for (Operation *user : work.pop_back_val()->getUsers()) {
      if (isa<nn::OptimizerUpdateOpInterface>(user))
        return true;
      if (seen.insert(user).second)
        work.push_back(user);
    }
  }
  return false;
}

/// The collectives behind which only sums, casts and the choice of a rank's term make the number.
static SmallVector<dist::CollectiveOpInterface> findExchanges(Value number) {
  SmallVector<dist::CollectiveOpInterface> found;
  DenseSet<Operation *> seen;
  SmallVector<Value> work{number};
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    bool isExchange = def && dist::isTensorCollective(def);
    if (!def || !(isExchange || isa<nn::AddOp, nn::CastOp, dist::SelectOp>(def)) || !seen.insert(def).second)
      continue;
    if (isExchange)
      found.push_back(cast<dist::CollectiveOpInterface>(def));
    work.append(def->operand_begin(), def->operand_end());
  }
  return found;
}

void nameNorm(func::FuncOp step, StringAttr axis) {
  auto scope = StringAttr::get(step.getContext(), getScope({.kind = ActionKind::Norm}));
  auto update = StringAttr::get(step.getContext(), getScope({.kind = ActionKind::Update}));
  for (auto root : step.getBody().front().getOps<nn::SqrtOp>()) {
    if (!isScalar(root) || !reachesUpdate(root))
      continue;
    for (dist::CollectiveOpInterface exchange : findExchanges(root.getOperand()))
      if (exchange.communicates() && llvm::is_contained(exchange.getAxesAttr().getAxes(), axis) &&
          exchange->getAttr(exec::ExecDialect::kScopeAttr) == update)
        exchange->setAttr(exec::ExecDialect::kScopeAttr, scope);
  }
}

} // namespace shoal::pipe
