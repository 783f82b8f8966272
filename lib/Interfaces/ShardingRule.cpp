// Sharding rules that many ops share, and the default way to build an op on shards.
#include "shoal/Interfaces/ShardingRule.h"

using namespace mlir;

namespace shoal {

LogicalResult localizeByCloning(Operation *op, OpBuilder &builder, ValueRange operands,
                                const LocalizeContext &ctx, SmallVectorImpl<Value> &results) {
  SmallVector<Type> types;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    types.push_back(ctx.localResultType(i));
  OperationState state(op->getLoc(), op->getName(), operands, types, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *local = builder.create(state);
  llvm::append_range(results, local->getResults());
  return success();
}

namespace rules {

ShardingRule elementwise(Operation *op) {
  ShardingRule rule;
  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t rank = resultType.getRank();
  TensorFactors result(rank);
  for (int64_t d = 0; d < rank; ++d)
    result[d].push_back(rule.addFactor(resultType.getDimSize(d)));
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    TensorFactors factors(type.getRank());
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int64_t resultDim = d + rank - type.getRank();
      // A stretched dimension has no factor: it is whole on every device.
      if (type.getDimSize(d) == resultType.getDimSize(resultDim))
        factors[d] = result[resultDim];
    }
    rule.operands.push_back(std::move(factors));
  }
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    rule.results.push_back(result);
  return rule;
}

ShardingRule replicated(Operation *op) {
  ShardingRule rule;
  auto add = [&](Type type) {
    TensorFactors factors;
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (int64_t size : tensor.getShape())
        factors.push_back({rule.addFactor(size, FactorKind::NeedReplication)});
    return factors;
  };
  for (Type type : op->getOperandTypes())
    rule.operands.push_back(add(type));
  for (Type type : op->getResultTypes())
    rule.results.push_back(add(type));
  return rule;
}

} // namespace rules
} // namespace shoal
