// Regions of micro-batches with other results; see AccumulateResults.h.
#include "AccumulateResults.h"

#include "shoal/Support/DeadOps.h"

using namespace mlir;

namespace shoal::dist {

/// The op again, with what its body yields now; result `kept[i]` of the old one is result i.
static AccumulateOp rebuild(AccumulateOp op, ArrayRef<unsigned> kept) {
  OperandRange yielded = op.getBody().front().getTerminator()->getOperands();
  OpBuilder b(op);
  OperationState state(op.getLoc(), op->getName(), op->getOperands(), yielded.getTypes(), op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addRegion()->takeBody(op.getBody());
  auto made = cast<AccumulateOp>(b.create(state));
  // Numbers and tags are those of all results.
  made->removeAttr(DistDialect::kIdAttr);
  made->removeAttr(DistDialect::kGlobalsAttr);
  if (auto old = op->getAttrOfType<ArrayAttr>(DistDialect::kShardingsAttr)) {
    SmallVector<Attribute> shardings;
    for (unsigned index : kept)
      shardings.push_back(old[index]);
    for (Value value : made.getBody().front().getTerminator()->getOperands().drop_front(kept.size()))
      shardings.push_back(getSharding(value));
    made->setAttr(DistDialect::kShardingsAttr, b.getArrayAttr(shardings));
  }
  for (auto [i, index] : llvm::enumerate(kept))
    op->getResult(index).replaceAllUsesWith(made->getResult(i));
  op->erase();
  return made;
}

AccumulateOp addResults(AccumulateOp op, ArrayRef<Value> yielded) {
  Operation *yield = op.getBody().front().getTerminator();
  yield->insertOperands(yield->getNumOperands(), yielded);
  return rebuild(op, llvm::to_vector(llvm::seq<unsigned>(0, op->getNumResults())));
}

void dropUnreadResults(AccumulateOp op) {
  SmallVector<unsigned> kept;
  llvm::BitVector unread(op->getNumResults());
  for (OpResult result : op->getResults())
    if (result.use_empty())
      unread.set(result.getResultNumber());
    else
      kept.push_back(result.getResultNumber());
  if (unread.none())
    return;
  op.getBody().front().getTerminator()->eraseOperands(unread);
  eraseDeadOps(rebuild(op, kept).getBody().front());
}

} // namespace shoal::dist
