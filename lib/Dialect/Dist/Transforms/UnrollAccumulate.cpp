// Copies the body of an accumulate per micro-batch; see UnrollAccumulate.h.
#include "UnrollAccumulate.h"

#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::dist {

void unrollAccumulate(AccumulateOp op) {
  OpBuilder b(op);
  Block &body = op.getBody().front();
  SmallVector<Value> sums;
  int64_t count = op.getMicrobatches();
  for (int64_t micro = 0; micro < count; ++micro) {
    IRMapping mapping;
    for (auto [input, argument] : llvm::zip_equal(op.getInputs(), body.getArguments())) {
      auto type = cast<RankedTensorType>(argument.getType());
      Value part = input;
      if (count > 1)
        part =
            b.create<nn::SliceOp>(op.getLoc(), type, input, /*dim=*/0, micro * type.getDimSize(0));
      mapping.map(argument, part);
    }
    for (Operation &inner : body.without_terminator())
      b.clone(inner, mapping);
    for (auto [i, yielded] : llvm::enumerate(body.getTerminator()->getOperands())) {
      Value value = mapping.lookupOrDefault(yielded);
      if (micro == 0)
        sums.push_back(value);
      else
        sums[i] = b.create<nn::AddOp>(op.getLoc(), sums[i], value);
    }
  }
  // The sums stand for the op's results.
  if (auto tags = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr); tags && count > 1)
    for (auto [i, sum] : llvm::enumerate(sums))
      sum.getDefiningOp()->setAttr(DistDialect::kGlobalsAttr, b.getArrayAttr({tags[i]}));
  op.replaceAllUsesWith(sums);
  op.erase();
}

} // namespace shoal::dist
