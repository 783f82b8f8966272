// cross_entropy and its gradient as the ops they are made of, which can be sharded along the classes
// (Shoeybi et al. 2019, "Megatron-LM", section 3).
#include "Build.h"

#include "shoal/Dialect/NN/IR/Means.h"

#include <limits>

using namespace mlir;
using namespace shoal::nn;

namespace {

/// Logits in the type that is computed in, and targets, seen by rows.
struct Rows {
  template <typename Op>
  Rows(Op op, OpBuilder &builder)
      : b{builder, op.getLoc()}, targets(op.getTargets()), ignoreIndex(op.getIgnoreIndex()),
        classDim(op.getLogits().getType().getRank() - 1) {
    Type element = CrossEntropyOp::getLseType(op.getLogits().getType()).getElementType();
    logits = b.cast(op.getLogits(), element);
    targets = isFloat(targets) ? b.cast(targets, element) : spread(b.cast(targets, builder.getI64Type()));
  }

  /// One number per row, in a shape that broadcasts over the classes.
  Value spread(Value row) {
    SmallVector<int64_t> shape(typeOf(row).getShape());
    shape.push_back(1);
    return b.reshape(row, typeOf(row).clone(shape));
  }
  /// One number per row, in that shape.
  Value sum(Value x) { return b.sum(x, classDim, /*keepDims=*/true); }
  /// Where the class is the row's target. Classes are numbered once, for all rows.
  Value isTarget() {
    SmallVector<int64_t> shape(classDim, 1);
    shape.push_back(typeOf(logits).getDimSize(classDim));
    auto type = RankedTensorType::get(shape, b.builder.getI64Type());
    Value classes = b.builder.create<IotaOp>(b.loc, type, b.builder.getI64IntegerAttr(classDim));
    return b.compare(Predicate::eq, classes, targets);
  }
  /// `value` for rows that count, 0 for ignored ones, NaN where the target is no class.
  Value whereCounted(Value value) {
    auto integer = [&](int64_t number) {
      auto type = RankedTensorType::get({}, b.builder.getI64Type());
      return b.builder.create<ConstantOp>(b.loc, type, DenseIntElementsAttr::get(type, number));
    };
    Value nan = b.scalar(value, std::numeric_limits<double>::quiet_NaN());
    int64_t classes = typeOf(logits).getDimSize(classDim);
    value = b.select(b.compare(Predicate::lt, targets, integer(classes)), value, nan);
    value = b.select(b.compare(Predicate::ge, targets, integer(0)), value, nan);
    Value ignored = b.compare(Predicate::eq, targets, integer(ignoreIndex));
    return b.select(ignored, b.scalar(value, 0), value);
  }

  Build b;
  Value logits;
  Value targets; // distributions, or a class per row
  int64_t ignoreIndex, classDim;
};

} // namespace

RankedTensorType CrossEntropyOp::getLseType(Type logits) { return getRowStatisticType(logits); }

FailureOr<SmallVector<Value>> CrossEntropyOp::decompose(OpBuilder &builder) {
  if (failed(verifyNoMean(*this)))
    return failure();
  Rows rows(*this, builder);
  Build &b = rows.b;
  // Statistics stay in one shape: one that is seen in two would be reduced over devices twice.
  Value max = builder.create<ReduceOp>(b.loc, Reduce::max, rows.logits, rows.classDim, /*keep_dims=*/true);
  Value shifted = b.sub(rows.logits, max);
  Value exp = builder.create<ExpOp>(b.loc, shifted);
  Value logSum = builder.create<LogOp>(b.loc, rows.sum(exp));
  Value lse = b.reshape(b.add(max, logSum), typeOf(getLse()));

  Value losses;
  if (isFloat(rows.targets)) {
    losses = rows.sum(b.mul(rows.targets, b.sub(logSum, shifted)));
  } else {
    // Does not wait for the sum of exponentials.
    Value picked = rows.sum(b.select(rows.isTarget(), shifted, b.scalar(shifted, 0)));
    losses = rows.whereCounted(b.sub(logSum, picked));
  }
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, rows.classDim + 1));
  Value loss = b.sum(losses, all, /*keepDims=*/false);
  return SmallVector<Value>{b.cast(loss, typeOf(getLoss()).getElementType()), lse};
}

FailureOr<SmallVector<Value>> CrossEntropyGradOp::decompose(OpBuilder &builder) {
  Rows rows(*this, builder);
  Build &b = rows.b;
  Value softmax = builder.create<ExpOp>(b.loc, b.sub(rows.logits, rows.spread(getLse())));
  Value scale = b.cast(getScale(), typeOf(softmax).getElementType());
  Value gradient;
  if (isFloat(rows.targets)) {
    Value mass = rows.sum(rows.targets);
    gradient = b.mul(b.sub(b.mul(softmax, mass), rows.targets), scale);
  } else {
    Value target = b.cast(rows.isTarget(), typeOf(softmax).getElementType());
    gradient = rows.whereCounted(b.mul(b.sub(softmax, target), scale));
  }
  return SmallVector<Value>{b.cast(gradient, getType().getElementType())};
}
