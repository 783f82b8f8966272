// Which positions have a value: an op that some positions run defines its results there, what is
// computed from them is defined where all of its operands are, a select where what it takes is.
#include "DefinedPositions.h"

#include "shoal/Dialect/Dist/IR/Positions.h"

using namespace mlir;

namespace shoal::exec {

namespace {

using llvm::BitVector;

class Definedness {
public:
  explicit Definedness(dist::MeshAttr mesh) : mesh(mesh), all(mesh.getNumDevices(), true) {}

  LogicalResult visit(Block &block) {
    for (Operation &op : block)
      if (failed(visit(&op)))
        return failure();
    return success();
  }

private:
  LogicalResult visit(Operation *op) {
    if (auto select = dyn_cast<dist::SelectOp>(op)) {
      BitVector defined(all.size());
      for (auto [position, choice] : llvm::enumerate(select.getChoices()))
        if (of(select.getInputs()[choice]).test(position))
          defined.set(position);
      known[select.getResult()] = defined;
      return success();
    }
    BitVector at = dist::getPositions(op, mesh);
    // What others see must exist wherever the op runs; what only computes may compute on nothing.
    bool shows = isa<dist::CollectiveOpInterface>(op) || op->hasTrait<OpTrait::ReturnLike>();
    for (Value operand : op->getOperands()) {
      BitVector missing = at;
      missing.reset(of(operand));
      if (missing.none())
        continue;
      if (shows) {
        auto diag = op->emitOpError() << "needs a value that mesh position "
                                      << missing.find_first() << " does not have";
        diag.attachNote(operand.getLoc()) << "the value comes from here";
        return diag;
      }
      at.reset(missing);
    }
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        if (failed(visit(block)))
          return failure();
        for (auto [result, value] :
             llvm::zip(op->getResults(), block.getTerminator()->getOperands())) {
          BitVector defined = at;
          defined &= of(value);
          known[result] = defined;
        }
      }
    for (Value result : op->getResults())
      if (!op->getNumRegions() && !at.all())
        known[result] = at;
    return success();
  }

  const BitVector &of(Value value) const {
    auto found = known.find(value);
    return found == known.end() ? all : found->second;
  }

  dist::MeshAttr mesh;
  BitVector all;
  DenseMap<Value, BitVector> known; // values that not all positions have
};

} // namespace

LogicalResult checkDefined(func::FuncOp step, dist::MeshAttr mesh) {
  bool isLimited = step->walk([](Operation *op) {
                         return op->hasAttr(dist::DistDialect::kAtAttr) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
                       }).wasInterrupted();
  return isLimited ? Definedness(mesh).visit(step.getBody().front()) : success();
}

} // namespace shoal::exec
