// batch_norm as the ops it is made of: in training with statistics of the batch, in inference with
// the running ones, and its gradient.
#include "Build.h"

using namespace mlir;
using namespace shoal::nn;

using CountFn = function_ref<Value(ValueRange, ArrayRef<int64_t>)>;

namespace {

struct BatchNorm {
  BatchNorm(BatchNormOp op, OpBuilder &builder) : op(op), b{builder, op.getLoc()} {
    for (int64_t d = 0; d < op.getInput().getType().getRank(); ++d)
      if (d != 1)
        rowDims.push_back(d);
  }

  /// Sums of all that belongs to a feature.
  Value sum(Value x) { return b.sum(x, rowDims, /*keepDims=*/false); }
  /// One value per feature, in a shape that broadcasts over the input.
  Value spread(Value feature) {
    SmallVector<int64_t> shape(op.getInput().getType().getRank() - 1, 1);
    shape[0] = typeOf(feature).getDimSize(0);
    return b.reshape(feature, typeOf(feature).clone(shape));
  }
  Value inverseDeviation(Value variance) {
    double eps = op.getEps().convertToDouble();
    return b.builder.create<RsqrtOp>(b.loc, b.add(variance, b.scalar(variance, eps)));
  }
  Value normalize(Value centered, Value variance) {
    Value factor = b.mul(inverseDeviation(variance), op.getScale());
    return b.add(b.mul(centered, spread(factor)), spread(op.getBias()));
  }
  Value average(Value running, Value batch) {
    double momentum = op.getMomentum().convertToDouble();
    return b.add(b.mul(running, 1 - momentum), b.mul(batch, momentum));
  }
  /// count - 1, but 1 for a single row.
  Value unbiasedCount(Value count) {
    Value one = b.scalar(count, 1);
    return b.max(b.sub(count, one), one);
  }
  /// The static count, without rows that may be missing.
  Value staticCount() {
    auto type = op.getInput().getType();
    int64_t count = 1;
    for (int64_t d : rowDims)
      count *= type.getDimSize(d);
    return b.scalar(op.getInput(), double(count));
  }

  BatchNormOp op;
  Build b;
  SmallVector<int64_t> rowDims;
};

} // namespace

/// The variance is the mean of centered squares: E[x^2] - E[x]^2 would lose its digits.
SmallVector<Value> BatchNormOp::decomposeWithCount(OpBuilder &builder, CountFn buildCount) {
  BatchNorm norm(*this, builder);
  Build &b = norm.b;
  Value x = getInput(), count = buildCount(x, norm.rowDims);
  Value mean = b.div(norm.sum(x), count);
  Value centered = b.sub(x, norm.spread(mean));
  Value squares = norm.sum(b.mul(centered, centered));
  Value result = norm.normalize(centered, b.div(squares, count));
  Value unbiased = b.div(squares, norm.unbiasedCount(count));
  return {result, norm.average(getRunningMean(), mean), norm.average(getRunningVar(), unbiased)};
}

FailureOr<SmallVector<Value>> BatchNormOp::decompose(OpBuilder &builder) {
  BatchNorm norm(*this, builder);
  return decomposeWithCount(builder, [&](ValueRange, ArrayRef<int64_t>) { return norm.staticCount(); });
}

SmallVector<Value> BatchNormOp::buildInference(OpBuilder &builder) {
  BatchNorm norm(*this, builder);
  Value centered = norm.b.sub(getInput(), norm.spread(getRunningMean()));
  return {norm.normalize(centered, getRunningVar()), getRunningMean(), getRunningVar()};
}

FailureOr<SmallVector<Value>> BatchNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                    const llvm::BitVector &needed) {
  BatchNorm norm(*this, builder);
  Build &b = norm.b;
  SmallVector<Value> result((*this)->getNumOperands());
  Value x = getInput(), count = norm.staticCount();
  Value centered = b.sub(x, norm.spread(b.div(norm.sum(x), count)));
  double momentum = getMomentum().convertToDouble();
  auto add = [&](Value term) { result[0] = result[0] ? b.add(result[0], term) : term; };

  if (Value ct = cotangents[0]) {
    Value variance = b.div(norm.sum(b.mul(centered, centered)), count);
    Value inverse = norm.inverseDeviation(variance);
    Value byBias = norm.sum(ct), products = norm.sum(b.mul(ct, centered));
    result[1] = b.mul(products, inverse);
    result[2] = byBias;
    // What the mean and the variance take back of the cotangent.
    Value slope = b.div(b.mul(products, b.mul(inverse, inverse)), count);
    Value back = b.add(norm.spread(b.div(byBias, count)), b.mul(centered, norm.spread(slope)));
    add(b.mul(b.sub(ct, back), norm.spread(b.mul(inverse, getScale()))));
  }
  if (Value ct = cotangents[1]) {
    add(b.broadcast(norm.spread(b.div(b.mul(ct, momentum), count)), typeOf(x)));
    result[3] = b.mul(ct, 1 - momentum);
  }
  if (Value ct = cotangents[2]) {
    Value slope = b.div(b.mul(ct, 2 * momentum), norm.unbiasedCount(count));
    add(b.mul(centered, norm.spread(slope)));
    result[4] = b.mul(ct, 1 - momentum);
  }
  return result;
}
