// What a mean divides its sum by: MeanOpInterface of the ops that can be means.
#include "shoal/Dialect/NN/IR/NN.h"

using namespace mlir;
using namespace shoal::nn;

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
  auto scalar = [&](Type element, double value) -> Value {
    return builder.create<ConstantOp>(getLoc(), RankedTensorType::get({}, element), value);
  };
  Type i64 = builder.getI64Type();
  Value ignored = scalar(targets.getElementType(), int64_t(getIgnoreIndex()));
  Value counted = builder.create<CompareOp>(getLoc(), Predicate::ne, getTargets(), ignored);
  Value terms = builder.create<CastOp>(getLoc(), targets.clone(i64), counted);
  if (targets.getRank() != 0)
    terms = builder.create<ReduceOp>(getLoc(), Reduce::sum, terms, leadingDims(targets.getRank()));
  terms = builder.create<MaximumOp>(getLoc(), terms, scalar(i64, 1));
  return builder.create<CastOp>(getLoc(), RankedTensorType::get({}, logits.getElementType()),
                                terms);
}
