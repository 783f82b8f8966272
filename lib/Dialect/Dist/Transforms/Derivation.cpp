// What is made of one tensor alone; see Derivation.h.
#include "Derivation.h"

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace shoal::dist {

bool Derivation::isFixed(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() > 0 || !isMemoryEffectFree(op))
    return false;
  if (auto known = fixed.find(value); known != fixed.end())
    return known->second;
  bool isFixedOp = llvm::all_of(op->getOperands(), [&](Value operand) { return isFixed(operand); });
  return fixed[value] = isFixedOp;
}

bool Derivation::derives(Operation *op, llvm::function_ref<bool(Value)> isOfTensor) {
  if (op->getNumResults() == 0 || op->getNumRegions() > 0 || op->hasTrait<OpTrait::IsTerminator>() ||
      !(isMemoryEffectFree(op) || isa<CollectiveOpInterface>(op)))
    return false;
  return llvm::any_of(op->getOperands(), isOfTensor) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isOfTensor(operand) || isFixed(operand); });
}

} // namespace shoal::dist
