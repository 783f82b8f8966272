// A proxy of time.
#include "shoal/Dialect/Dist/Transforms/OpCost.h"

#include "Traffic.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Interfaces/ShardingRule.h"
#include "shoal/Support/Elements.h"

using namespace mlir;

namespace shoal::dist {

double costOf(Operation *op, MeshAttr mesh) {
  double cost = 0, bytes = 0;
  auto add = [&](Type type) { bytes += double(tensorBytes(type)); };
  llvm::for_each(op->getOperandTypes(), add);
  llvm::for_each(op->getResultTypes(), add);
  if (auto rule = dyn_cast<ShardingRuleOpInterface>(op))
    cost = rule.getFlops();
  cost += kFlopsPerSecond / kBytesPerSecond * bytes;
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!mesh || !collective || !collective.communicates() || op->getNumOperands() == 0)
    return cost;
  int64_t ranks = mesh.getSize(collective.getAxesAttr().getAxes());
  int64_t element = elementBytes(getTensorType(op->getOperand(0)).getElementType());
  uint64_t sent = sentBytes(trafficOf(op, ranks), ranks, element);
  return cost + kFlopsPerSecond / kSentBytesPerSecond * double(sent) + kFlopsPerSecond * kSecondsPerMessage;
}

} // namespace shoal::dist
