// What a mean divides its sum by: MeanOpInterface of the ops that can be means.
#include "Build.h"

#include "shoal/Dialect/NN/IR/Means.h"

using namespace mlir;
using namespace shoal::nn;

LogicalResult shoal::nn::verifyNoMean(Operation *op) {
  if (auto mean = dyn_cast<MeanOpInterface>(op); mean && mean.isMean())
    return op->emitOpError("is a mean, and what it divides by is the count of the whole: run nn-explicit-counts on the "
                           "model; by hand write the sum and divide it");
  return success();
}

using CountFn = function_ref<Value(ValueRange, ArrayRef<int64_t>)>;

static SmallVector<int64_t> leadingDims(int64_t count) {
  return llvm::to_vector(llvm::seq<int64_t>(0, count));
}

bool ReduceOp::isMean() { return getKind() == Reduce::mean; }
void ReduceOp::makeSum() { setKind(Reduce::sum); }
Value ReduceOp::buildCount(OpBuilder &, CountFn count) { return count(getInput(), getDims()); }

bool MseLossOp::isMean() { return getReduction() == LossReduction::mean; }
void MseLossOp::makeSum() { setReduction(LossReduction::sum); }
Value MseLossOp::buildCount(OpBuilder &, CountFn count) {
  return count({getPrediction(), getTarget()}, leadingDims(getPrediction().getType().getRank()));
}

bool CrossEntropyOp::isMean() { return getReduction() == LossReduction::mean; }
void CrossEntropyOp::makeSum() { setReduction(LossReduction::sum); }
Value CrossEntropyOp::buildCount(OpBuilder &builder, CountFn count) {
  auto logits = getLogits().getType();
  auto targets = getTargets().getType();
  if (isa<FloatType>(targets.getElementType()))
    return count({getLogits(), getTargets()}, leadingDims(logits.getRank() - 1));
  // Targets that are not ignored, at least 1. Those of rows that are not real are masked to be
  // ignored.
  Build b{builder, getLoc()};
  Value ignored = b.scalar(getTargets(), double(int64_t(getIgnoreIndex())));
  Value counted = b.compare(Predicate::ne, getTargets(), ignored);
  Value terms = b.cast(counted, builder.getI64Type());
  if (targets.getRank() != 0)
    terms = b.sum(terms, leadingDims(targets.getRank()), /*keepDims=*/false);
  terms = b.max(terms, b.scalar(terms, 1));
  return b.cast(terms, typeOf(getLoss()).getElementType());
}
