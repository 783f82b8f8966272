// Definitions of the four op interfaces, and questions that passes ask by them.
#include "shoal/Interfaces/Differentiable.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Interfaces/Reference.h"
#include "shoal/Interfaces/ShardingRule.h"

#include "shoal/Dialect/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/LoweringOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/ReferenceOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/ShardingRuleOpInterface.cpp.inc"

using namespace mlir;

namespace shoal {

bool lowersAs(Operation *op, LoweringKind kind) {
  auto lowering = dyn_cast_or_null<LoweringOpInterface>(op);
  return lowering && lowering.getLoweringKind() == kind;
}

Value stripViews(Value value) {
  while (lowersAs(value.getDefiningOp(), LoweringKind::View))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

} // namespace shoal
