// Sharding rules that many ops share, and the default way to build an op on shards.
#include "shoal/Interfaces/AddFactors.h"

#include <cmath>
#include <limits>

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

bool holds(const TensorFactors &tensor, unsigned factor) {
  return llvm::any_of(tensor, [&](ArrayRef<unsigned> dim) { return llvm::is_contained(dim, factor); });
}

bool isContraction(const ShardingRule &rule) {
  SmallVector<unsigned> alone; // the operands in which the op is linear
  for (const auto &group : rule.linear)
    if (group.size() == 1)
      alone.push_back(group.front());
  for (auto [f, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == FactorKind::Reduction &&
        llvm::count_if(alone, [&](unsigned operand) { return holds(rule.operands[operand], f); }) >= 2)
      return true;
  return false;
}

double flopsOfContraction(Operation *op, const ShardingRule &rule) {
  if (!fits(rule, op) || !isContraction(rule))
    return 0;
  double flops = 2;
  for (const Factor &factor : rule.factors)
    flops *= factor.size;
  return flops;
}

bool fits(const ShardingRule &rule, Operation *op) {
  auto fitsValues = [&](ArrayRef<TensorFactors> tensors, TypeRange types) {
    if (tensors.size() != types.size())
      return false;
    for (auto [tensor, type] : llvm::zip(tensors, types)) {
      auto shaped = dyn_cast<ShapedType>(type);
      if (static_cast<int64_t>(tensor.size()) != (shaped && shaped.hasRank() ? shaped.getRank() : 0))
        return false;
      for (ArrayRef<unsigned> dim : tensor)
        if (llvm::any_of(dim, [&](unsigned f) { return f >= rule.factors.size(); }))
          return false;
    }
    return true;
  };
  return fitsValues(rule.operands, op->getOperandTypes()) &&
         fitsValues(rule.results, op->getResultTypes());
}

std::optional<double> reductionIdentity(ReduceKind kind, Type elementType) {
  if (kind == ReduceKind::Sum)
    return 0.0;
  double infinity = std::numeric_limits<double>::infinity();
  auto integer = dyn_cast<IntegerType>(elementType);
  if (!integer)
    return kind == ReduceKind::Max ? -infinity : infinity;
  double bound = std::ldexp(1.0, integer.getWidth() - 1);
  if (kind == ReduceKind::Max)
    return -bound;
  if (integer.getWidth() > 53)
    return std::nullopt;
  return bound - 1;
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
    auto shaped = dyn_cast<ShapedType>(type);
    return shaped && shaped.hasRank() ? addFactors(rule, shaped.getShape(), FactorKind::NeedReplication)
                                      : TensorFactors();
  };
  for (Type type : op->getOperandTypes())
    rule.operands.push_back(add(type));
  for (Type type : op->getResultTypes())
    rule.results.push_back(add(type));
  return rule;
}

} // namespace rules
} // namespace shoal
