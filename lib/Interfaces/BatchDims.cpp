// Which dimensions descend from the batch; see BatchDims.h.
#include "shoal/Interfaces/BatchDims.h"

using namespace mlir;
using namespace shoal;

int64_t BatchDims::getInner(Value value, unsigned dim) const {
  auto it = inners.find(value);
  return it == inners.end() ? 0 : it->second[dim];
}

void BatchDims::setInner(Value value, unsigned dim, int64_t inner) {
  auto &dims = inners[value];
  dims.resize(cast<ShapedType>(value.getType()).getRank());
  dims[dim] = inner;
}

/// Which of a dimension's factors hold the batch, major to minor; none when a factor straddles
/// the border between batch and inner elements.
std::optional<BatchFactors> BatchDims::splitOffBatch(const ShardingRule &rule, ArrayRef<unsigned> factors) const {
  BatchFactors result;
  int64_t left = batchSize;
  for (unsigned factor : factors) {
    if (left == 1 && !(followsOneRow && result.factors.empty()))
      break;
    int64_t size = rule.factors[factor].size;
    result.factors.push_back(factor);
    if (left % size == 0) {
      left /= size;
    } else if (size % left == 0) {
      result.inner = size / left;
      left = 1;
    } else {
      return std::nullopt;
    }
  }
  if (left != 1)
    return std::nullopt;
  return result;
}

void BatchDims::addBatchFactors(Value value, const TensorFactors &tensor, const ShardingRule &rule,
                                SmallVectorImpl<BatchFactors> &batches) const {
  if (!inners.contains(value))
    return;
  for (auto [d, factors] : llvm::enumerate(tensor)) {
    if (getInner(value, d) == 0)
      continue;
    auto batch = splitOffBatch(rule, factors);
    if (batch && !llvm::is_contained(batches, *batch))
      batches.push_back(*batch);
  }
}

SmallVector<BatchFactors> BatchDims::getBatchFactors(Operation *op,
                                                     const ShardingRule &rule) const {
  SmallVector<BatchFactors> batches;
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    addBatchFactors(operand, tensor, rule, batches);
  return batches;
}

std::optional<int64_t> BatchDims::getInner(const ShardingRule &rule, ArrayRef<unsigned> factors,
                                           ArrayRef<BatchFactors> batches) {
  int64_t inner = 0;
  for (const BatchFactors &batch : batches) {
    bool holds = llvm::any_of(batch.factors,
                              [&](unsigned factor) { return llvm::is_contained(factors, factor); });
    if (!holds)
      continue;
    if (inner != 0 || factors.size() < batch.factors.size() ||
        factors.take_front(batch.factors.size()) != ArrayRef<unsigned>(batch.factors))
      return std::nullopt;
    inner = batch.inner;
    for (unsigned factor : factors.drop_front(batch.factors.size()))
      inner *= rule.factors[factor].size;
  }
  return inner;
}

void BatchDims::propagate(Operation *op, const ShardingRule &rule) {
  SmallVector<BatchFactors> batches = getBatchFactors(op, rule);
  Operation *lost = nullptr;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (Operation *earlier = getLostAt(operand))
      lost = earlier;
    if (!inners.contains(operand))
      continue;
    for (auto [d, factors] : llvm::enumerate(rule.operands[i])) {
      if (getInner(operand, d) == 0)
        continue;
      // What needs the whole dimension may move rows anywhere.
      bool movesRows =
          llvm::any_of(factors, [&](unsigned factor) { return rule.factors[factor].isReadAnywhere(); });
      if (movesRows || !splitOffBatch(rule, factors))
        lost = op;
    }
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    if (!isa<ShapedType>(result.getType())) {
      lost = op;
      break;
    }
    for (auto [d, factors] : llvm::enumerate(rule.results[i])) {
      std::optional<int64_t> inner = getInner(rule, factors, batches);
      if (!inner)
        lost = op;
      else if (*inner != 0)
        setInner(result, d, *inner);
    }
  }
  if (lost)
    for (Value result : op->getResults()) {
      inners.erase(result);
      lostAt[result] = lost;
    }
}

bool BatchDims::join(Operation *op, const ShardingRule &rule) {
  SmallVector<BatchFactors> batches = getBatchFactors(op, rule);
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    addBatchFactors(result, tensor, rule, batches);
  bool isNew = false;
  auto spread = [&](Value value, const TensorFactors &tensor) {
    for (auto [d, factors] : llvm::enumerate(tensor)) {
      int64_t inner = getInner(rule, factors, batches).value_or(0);
      if (inner == 0 || getInner(value, d) == inner)
        continue;
      setInner(value, d, inner);
      isNew = true;
    }
  };
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    spread(operand, tensor);
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    spread(result, tensor);
  return isNew;
}
