// Follows a value to the ops that use its elements as indices.
#include "shoal/Dialect/NN/IR/IndexRange.h"

#include "shoal/Dialect/NN/IR/NN.h"

using namespace mlir;

namespace shoal::nn {

/// Whether result 0 holds the elements of the operand, as far as it holds them all, and constants.
static bool movesElements(OpOperand &use) {
  Operation *op = use.getOwner();
  if (use.getOperandNumber() != 0 || op->getNumResults() != 1)
    return false;
  if (isa<MaskOp, PadOp>(op))
    return true;
  if (auto castOp = dyn_cast<CastOp>(op))
    return isa<FloatType>(castOp.getInput().getType().getElementType()) ==
           isa<FloatType>(castOp.getType().getElementType());
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled && ruled.getShardingRule().movesOnly;
}

static int64_t countElements(Value value) {
  return cast<ShapedType>(value.getType()).getNumElements();
}

IndexRange intersect(const IndexRange &a, const IndexRange &b) {
  auto holds = [](const IndexRange &range, int64_t index) {
    return (index >= 0 && index < range.size) || range.ignored == index;
  };
  IndexRange both{std::min(a.size, b.size)};
  for (const IndexRange &range : {a, b})
    if (range.ignored && holds(a, *range.ignored) && holds(b, *range.ignored))
      both.ignored = range.ignored;
  return both;
}

std::optional<IndexRange> findIndexRange(Value value, IndexUse wanted,
                                         function_ref<Value(OpOperand &)> enter) {
  std::optional<IndexRange> found;
  SmallVector<Value> worklist{value};
  for (size_t next = 0; next < worklist.size(); ++next)
    for (OpOperand &use : worklist[next].getUses()) {
      Operation *op = use.getOwner();
      if (auto indexed = dyn_cast<IndexOperandOpInterface>(op))
        if (auto range = indexed.getIndexRange(use.getOperandNumber()))
          found = found ? intersect(*found, *range) : *range;
      if (Value inside = enter(use))
        worklist.push_back(inside);
      else if (movesElements(use) &&
               (wanted == IndexUse::Some ||
                countElements(op->getResult(0)) >= countElements(use.get())))
        worklist.push_back(op->getResult(0));
    }
  return found;
}

} // namespace shoal::nn
