// The id of a random op is an attribute, which would make a kernel of its own of each. What draws with id k and
// step t draws as id 0 does with step t + k * 2^32, and the step is an operand.
#include "RandomIds.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace shoal::exec {

static Value addIds(OpBuilder &builder, Location loc, Value step, int64_t ids, Attribute at) {
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  auto words = DenseIntElementsAttr::get(scalar, int64_t(uint64_t(ids) << 32));
  auto sum = builder.create<nn::AddOp>(loc, step, builder.create<nn::ConstantOp>(loc, scalar, words));
  if (at)
    sum->setAttr(dist::DistDialect::kAtAttr, at);
  return sum;
}

void moveIdsToSteps(Block &block) {
  // By id in ascending order: a chain, so that the sums become one kernel, or a few when they are many. Each set of
  // mesh positions has its own.
  using ById = std::map<int64_t, SmallVector<nn::DropoutOp>>;
  llvm::MapVector<Value, llvm::MapVector<Attribute, ById>> stepped;
  block.walk([&](nn::DropoutOp op) {
    if (op.isSeeded())
      stepped[op.getStep()][op->getAttr(dist::DistDialect::kAtAttr)][op.getId()].push_back(op);
  });
  for (auto &[step, byPositions] : stepped) {
    llvm::SmallDenseSet<int64_t> ids;
    for (auto &[at, byId] : byPositions)
      for (auto &[id, ops] : byId)
        ids.insert(id);
    if (ids.size() < 2)
      continue;
    OpBuilder builder(block.getParent());
    if (Operation *def = step.getDefiningOp())
      builder.setInsertionPointAfter(def);
    else
      builder.setInsertionPointToStart(&block);
    for (auto &[at, byId] : byPositions) {
      Value reached = step;
      int64_t last = 0;
      for (auto &[id, ops] : byId) {
        if (id != last)
          reached = addIds(builder, ops.front().getLoc(), reached, id - last, at);
        last = id;
        for (nn::DropoutOp op : ops) {
          op.getStepMutable().assign(reached);
          op.setId(0);
        }
      }
    }
  }
}

} // namespace shoal::exec
