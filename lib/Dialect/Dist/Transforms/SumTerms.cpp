// A tree of adds as its terms; see SumTerms.h.
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"

#include "ForeignAttrs.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"

#include "llvm/ADT/DenseSet.h"

#include <set>

using namespace mlir;

namespace shoal::dist {

SmallVector<Value> collectTerms(Value whole, Operation *reader) {
  SmallVector<Value> terms;
  SmallVector<std::pair<Value, Operation *>> work{{whole, reader}}; // with the reader that falls away
  while (!work.empty()) {
    auto [value, reader] = work.pop_back_val();
    auto sum = value.getDefiningOp<nn::AddOp>();
    auto isOther = [reader = reader](Operation *user) { return user != reader; };
    if (!sum || sum.getLhs() == sum.getRhs() || llvm::any_of(sum->getUsers(), isOther) ||
        sum.getLhs().getType() != value.getType() || sum.getRhs().getType() != value.getType()) {
      terms.push_back(value);
      continue;
    }
    work.push_back({sum.getRhs(), sum});
    work.push_back({sum.getLhs(), sum});
  }
  return terms;
}

Operation *addToRunningSum(OpBuilder &b, Value sum, Value term, Attribute number) {
  if (Operation *def = term.getDefiningOp(); def && def->hasAttr(exec::ExecDialect::kClassAttr))
    setClass(def, exec::StorageClass::workspace);
  auto add = b.create<nn::AddOp>(term.getLoc(), sum, term);
  add->setAttr(kRunningSumAttr, b.getUnitAttr());
  if (number)
    add->setAttr(kMicrobatchAttr, number);
  return add;
}

SmallVector<int64_t> findStages(Value sum) {
  // Where nothing has a stage, the walk would see the whole program.
  if (!hasPipeline(sum.getParentBlock()->getParentOp()))
    return {};
  std::set<int64_t> stages;
  DenseSet<Value> seen;
  SmallVector<Value> work{sum};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    auto result = dyn_cast<OpResult>(value);
    if (!result || !seen.insert(value).second)
      continue;
    Operation *op = result.getOwner();
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      work.push_back(accumulate.getBody().front().getTerminator()->getOperand(result.getResultNumber()));
      continue;
    }
    // An add of two stages' terms is made in either.
    if (auto stage = op->getAttrOfType<IntegerAttr>(origin::kStage); stage && !isa<nn::AddOp>(op))
      stages.insert(stage.getInt());
    else
      llvm::append_range(work, op->getOperands());
  }
  return SmallVector<int64_t>(stages.begin(), stages.end());
}

} // namespace shoal::dist
