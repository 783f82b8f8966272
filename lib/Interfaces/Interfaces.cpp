// Definitions of the op interfaces, questions that passes ask by them, and what all ops must keep.
#include "shoal/Interfaces/Differentiable.h"
#include "shoal/Interfaces/KnownAttributes.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Interfaces/Positioned.h"
#include "shoal/Interfaces/Reference.h"
#include "shoal/Interfaces/ShardingRule.h"

#include "shoal/Dialect/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/LoweringOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/PositionedOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/ReferenceOpInterface.cpp.inc"
#include "shoal/Dialect/Interfaces/ShardingRuleOpInterface.cpp.inc"

using namespace mlir;

namespace shoal {

bool lowersAs(Operation *op, LoweringKind kind) {
  auto lowering = dyn_cast_or_null<LoweringOpInterface>(op);
  return lowering && lowering.getLoweringKind() == kind;
}

LogicalResult verifyAttributesKnown(Operation *op) {
  for (NamedAttribute attr : op->getDiscardableAttrs()) {
    if (attr.getNameDialect())
      continue;
    SmallVector<StringRef> known;
    for (StringAttr name : op->getName().getAttributeNames())
      if (!name.getValue().ends_with("SegmentSizes")) // MLIR's own, which no text holds
        known.push_back(name);
    auto diag = op->emitOpError() << "unknown attribute '" << attr.getName().getValue() << "', it knows: ";
    if (known.empty())
      return diag << "none";
    llvm::interleaveComma(known, diag);
    return diag;
  }
  return success();
}

static bool isSingleInteger(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getRank() == 0 && tensor.getElementType().isInteger();
}

void copyOrigin(Operation *from, Operation *to) {
  if (to->hasTrait<OpTrait::ConstantLike>())
    return;
  for (StringRef name : origin::kAll)
    if (Attribute attr = from->getDiscardableAttr(name))
      if (name != origin::kRecompute || !llvm::all_of(to->getResults(), isSingleInteger))
        to->setDiscardableAttr(name, attr);
}

void OriginScope::notifyOperationInserted(Operation *made, OpBuilder::InsertPoint) {
  copyOrigin(op, made);
  if (stage && !made->hasTrait<OpTrait::ConstantLike>())
    made->setDiscardableAttr(origin::kStage, stage);
}

Value stripViews(Value value) {
  while (lowersAs(value.getDefiningOp(), LoweringKind::View))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

} // namespace shoal
