// Which positions have a value: an op that some positions run defines its results there, what is
// computed from them is defined where all of its operands are, a select where what it takes is.
#include "DefinedPositions.h"

using namespace mlir;

namespace shoal::exec {

using Id = dist::PositionSets::Id;
using llvm::BitVector;

LogicalResult DefinedPositions::visit(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult DefinedPositions::visit(Operation *op) {
  Id at = sets->runsAt(op);
  auto define = [&](Value result, Id where) {
    if (where != dist::PositionSets::kAll)
      known[result] = where;
  };
  if (auto select = dyn_cast<dist::SelectOp>(op)) {
    BitVector where = (*sets)[at];
    for (auto [position, choice] : llvm::enumerate(select.getChoices()))
      if (!(*sets)[get(select.getInputs()[choice])].test(position))
        where.reset(position);
    define(select.getResult(), sets->get(where));
    return success();
  }
  bool returns = op->hasTrait<OpTrait::ReturnLike>();
  // What others see must exist wherever the op runs; what only computes may compute on nothing.
  bool shows = isa<dist::CollectiveOpInterface>(op);
  for (Value operand : op->getOperands()) {
    Id there = sets->intersect(at, get(operand));
    if (there == at)
      continue;
    if (shows || (returns && there == dist::PositionSets::kNone)) {
      BitVector missing = (*sets)[at];
      missing.reset((*sets)[there]);
      auto diag = op->emitOpError() << "needs a value that "
                                    << (returns ? "no mesh position has"
                                                : "mesh position " + std::to_string(missing.find_first()) +
                                                      " does not have");
      diag.attachNote(operand.getLoc()) << "the value comes from here";
      return diag;
    }
    if (!returns)
      at = there;
  }
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      if (failed(visit(block)))
        return failure();
      for (auto [result, value] : llvm::zip(op->getResults(), block.getTerminator()->getOperands()))
        define(result, sets->intersect(at, get(value)));
    }
  if (!op->getNumRegions())
    for (Value result : op->getResults())
      define(result, at);
  return success();
}

Id DefinedPositions::get(Value value) const {
  auto found = known.find(value);
  return found == known.end() ? Id(dist::PositionSets::kAll) : found->second;
}

DenseI64ArrayAttr DefinedPositions::of(Value value) const {
  auto found = known.find(value);
  if (found == known.end())
    return {};
  auto list = llvm::to_vector_of<int64_t>((*sets)[found->second].set_bits());
  return DenseI64ArrayAttr::get(value.getContext(), list);
}

LogicalResult DefinedPositions::find(func::FuncOp step, dist::MeshAttr mesh) {
  bool isLimited = step->walk([](Operation *op) {
                         return op->hasAttr(dist::DistDialect::kAtAttr) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
                       }).wasInterrupted();
  if (!isLimited)
    return success();
  sets.emplace(mesh.getNumDevices());
  return visit(step.getBody().front());
}

} // namespace shoal::exec
