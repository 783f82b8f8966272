// Sharding rules of the dist ops. Collectives have them because partitioning runs per subset of
// axes: what one run made is ordinary code to the next. A collective is independent along the
// dimensions that it does not gather or split, and linear where it only sums or moves elements.
#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Interfaces/AddFactors.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

enum class Partials { Sums, Any };

/// One input, one result of equal rank: every dimension passes through but for `whole`.
ShardingRule unaryRule(Value input, Value result, ArrayRef<uint64_t> whole, Partials partials) {
  RankedTensorType from = getTensorType(input), to = getTensorType(result);
  ShardingRule rule;
  TensorFactors inputs, results;
  for (int64_t d = 0; d < from.getRank(); ++d) {
    if (!llvm::is_contained(whole, (uint64_t)d)) {
      unsigned factor = rule.addFactor(from.getDimSize(d));
      inputs.push_back({factor});
      results.push_back({factor});
      continue;
    }
    inputs.push_back({rule.addFactor(from.getDimSize(d), FactorKind::NeedReplication)});
    results.push_back({rule.addFactor(to.getDimSize(d), FactorKind::NeedReplication)});
  }
  rule.operands.push_back(std::move(inputs));
  rule.results.push_back(std::move(results));
  rule.linear.push_back({0});
  rule.movesOnly = partials == Partials::Any;
  return rule;
}

/// A reduction over some devices leaves partial values of its own kind over others as they are.
ShardingRule reductionRule(Value input, Value result, ArrayRef<uint64_t> whole,
                           ReduceKindAttrEnum kind) {
  ShardingRule rule = unaryRule(input, result, whole, Partials::Sums);
  rule.linearKind = fromAttrEnum(kind);
  return rule;
}

} // namespace

ShardingRule ReshardOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {}, Partials::Any);
}
ShardingRule AllReduceOp::getShardingRule() {
  return reductionRule(getInput(), getResult(), {}, getKind());
}
ShardingRule AllGatherOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {getDim()}, Partials::Any);
}
ShardingRule ReduceScatterOp::getShardingRule() {
  return reductionRule(getInput(), getResult(), {getDim()}, getKind());
}
ShardingRule AllToAllOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {getSplit(), getConcat()}, Partials::Any);
}
ShardingRule AllSliceOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {getDim()}, Partials::Any);
}
ShardingRule BroadcastOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {}, Partials::Any);
}
ShardingRule ScatterOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {0}, Partials::Any);
}
// Zeros where nothing arrives are the identity of a sum only.
ShardingRule GatherOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {0}, Partials::Sums);
}
ShardingRule CollectivePermuteOp::getShardingRule() {
  return unaryRule(getInput(), getResult(), {}, Partials::Sums);
}

ShardingRule PermuteStartOp::getShardingRule() {
  return unaryRule(getInput(), getFuture(), {}, Partials::Sums);
}
LogicalResult PermuteStartOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                       SmallVectorImpl<Value> &results) {
  auto future = FutureType::get(getContext(), ctx.localResultType(0));
  auto local = builder.create<PermuteStartOp>(getLoc(), future, getAxes(), getSources(), getTargets(), operands.front(),
                                              getReasonAttr());
  local->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  results.push_back(local);
  return success();
}
// A future is laid as its tensor, and cannot be laid otherwise.
ShardingRule WaitOp::getShardingRule() {
  return unaryRule(getFuture(), getResult(), {}, Partials::Any);
}
// The same on every device.
ShardingRule AxisIndexOp::getShardingRule() { return rules::replicated(*this); }
LogicalResult AxisIndexOp::localize(OpBuilder &builder, ValueRange, const LocalizeContext &,
                                    SmallVectorImpl<Value> &results) {
  results.push_back(builder.clone(*getOperation())->getResult(0));
  return success();
}

// A bucket is an order of elements: sharding an operand's dimension would reorder them. Zeros (padding) are also parts
// of a sum that is zero.
ShardingRule PackOp::getShardingRule() {
  ShardingRule rule = rules::replicated(*this);
  rule.linear.emplace_back();
  for (auto [i, input] : llvm::enumerate(getInputs()))
    if (!matchPattern(input, m_AnyZeroFloat()))
      rule.linear.back().push_back(i);
  return rule;
}
ShardingRule UnpackOp::getShardingRule() {
  ShardingRule rule = rules::replicated(*this);
  llvm::append_range(rule.linear.emplace_back(), llvm::seq<unsigned>(0, getBuckets().size()));
  return rule;
}

// Inputs go to the body's arguments and yields to the results, so no factor joins an input to a
// result; whoever follows factors visits the region itself. Rows of a micro-batch may be sharded:
// the partitioner exchanges rows so that each device holds its part of every micro-batch.
ShardingRule AccumulateOp::getShardingRule() {
  ShardingRule rule;
  auto add = [&](Type type) { return addFactors(rule, cast<RankedTensorType>(type).getShape()); };
  for (Type type : getInputs().getTypes())
    rule.operands.push_back(add(type));
  for (Type type : getResults().getTypes())
    rule.results.push_back(add(type));
  return rule;
}
