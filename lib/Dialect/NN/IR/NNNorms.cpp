// layer_norm and rms_norm: their types and sharding rules, the ops they are made of, and gradients that
// read the statistics of rows which the forward program keeps.
#include "Build.h"

#include "shoal/Support/Elements.h"

#include <cmath>

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

using CountFn = function_ref<Value(ValueRange, ArrayRef<int64_t>)>;
using Values = FailureOr<SmallVector<Value>>;

// Types.

/// The input's type, then that of each statistic of its rows.
static LogicalResult inferRowNorm(std::optional<Location> loc, Value input, unsigned statistics,
                                  SmallVectorImpl<Type> &types) {
  RankedTensorType type = typeOf(input);
  if (type.getRank() < 1)
    return emitOptionalError(loc, "input must have a dimension to normalise over, got: ", type);
  types.push_back(type);
  types.append(statistics, getRowStatisticType(type));
  return success();
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            ValueRange operands, DictionaryAttr, OpaqueProperties,
                                            RegionRange, SmallVectorImpl<Type> &types) {
  return inferRowNorm(loc, operands[0], 2, types);
}

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                          ValueRange operands, DictionaryAttr, OpaqueProperties,
                                          RegionRange, SmallVectorImpl<Type> &types) {
  return inferRowNorm(loc, operands[0], 1, types);
}

template <typename NormOp> static LogicalResult verifyRowNorm(NormOp op, StringRef parameters) {
  auto input = op.getInput().getType();
  auto wanted = RankedTensorType::get(input.getShape().take_back(), input.getElementType());
  if (op.getScale().getType() != wanted)
    return op.emitOpError() << parameters << " must be " << wanted
                            << ", got: " << op.getScale().getType();
  double eps = op.getEps().convertToDouble();
  if (!(std::isfinite(eps) && eps >= 0))
    return op.emitOpError() << "eps must be at least 0, got: " << eps;
  return success();
}

LogicalResult LayerNormOp::verify() { return verifyRowNorm(*this, "scale and bias"); }
LogicalResult RmsNormOp::verify() { return verifyRowNorm(*this, "scale"); }

// Sharding rules.

/// Rows are independent; parameters lie along them, statistics across.
static ShardingRule rowNorm(Operation *op) {
  ShardingRule rule;
  TensorFactors input = addFactors(rule, typeOf(op->getOperand(0)).getShape());
  rule.factors.back().kind = FactorKind::Decompose;
  TensorFactors parameter = {input.back()}, statistic(ArrayRef(input).drop_back());
  rule.operands.assign(op->getNumOperands(), parameter);
  rule.operands[0] = input;
  rule.results.assign(op->getNumResults(), statistic);
  rule.results[0] = input;
  return rule;
}

ShardingRule LayerNormOp::getShardingRule() { return rowNorm(*this); }
ShardingRule RmsNormOp::getShardingRule() { return rowNorm(*this); }

// Parts and gradients.

namespace {

/// Chains of ops over rows, in the type that is computed in. Statistics have one element along rows, so
/// that they broadcast.
struct Rows {
  template <typename NormOp>
  Rows(NormOp op, OpBuilder &builder)
      : b{builder, op.getLoc()}, input(op.getInput()), scale(op.getScale()),
        eps(op.getEps().convertToDouble()), type(op.getInput().getType()),
        last(type.getRank() - 1) {}

  Value narrow(Value x) { return b.cast(x, type.getElementType()); }
  Value sum(Value x) { return b.sum(x, last, /*keepDims=*/true); }
  /// The mean over rows of the whole dimension's size.
  Value mean(Value x) { return b.mul(sum(x), 1.0 / double(type.getDimSize(last))); }
  Value inverseRoot(Value meanSquare) {
    return b.builder.create<RsqrtOp>(b.loc, b.add(meanSquare, b.scalar(meanSquare, eps)));
  }
  /// A statistic as a result, and back.
  Value drop(Value x) { return b.reshape(x, typeOf(x).clone(type.getShape().drop_back())); }
  Value keep(Value statistic) {
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = 1;
    return b.reshape(statistic, typeOf(statistic).clone(shape));
  }
  /// Summed over all rows, in the type of the parameters: such sums stay partial over devices, and a
  /// cast behind them would not be linear.
  Value sumOfRows(Value x) {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, last));
    x = narrow(x);
    return dims.empty() ? x : b.sum(x, dims, /*keepDims=*/false);
  }

  /// The cotangent of the input, from that of the result and of the statistics where they are not
  /// null. With xhat = (x - mean) rstd, g = ct scale and means over rows it is
  ///   rstd (g - mean(g) - xhat mean(g xhat)) + ct_mean / D - xhat rstd^2 ct_rstd / D;
  /// without a mean, the terms that come from it are not there.
  Value inputCotangent(Value xhat, Value rstd, Value ct, Value ctMean, Value ctRstd, bool hasMean) {
    Value total;
    auto plus = [&](Value term) { total = total ? b.add(total, term) : term; };
    double perElement = 1.0 / double(type.getDimSize(last));
    if (ct) {
      Value g = b.mul(b.wide(ct), b.wide(scale));
      Value along = b.mul(xhat, mean(b.mul(g, xhat)));
      plus(b.mul(rstd, b.sub(hasMean ? b.sub(g, mean(g)) : g, along)));
    }
    if (ctMean)
      plus(b.broadcast(b.mul(keep(ctMean), perElement), typeOf(xhat)));
    if (ctRstd) {
      Value slope = b.mul(b.mul(keep(ctRstd), -perElement), b.mul(rstd, rstd));
      plus(b.mul(xhat, slope));
    }
    return total ? narrow(total) : total;
  }

  Build b;
  Value input, scale;
  double eps;
  RankedTensorType type;
  int64_t last;
};

} // namespace

/// The variance is the mean of centered squares: E[x^2] - E[x]^2 would lose its digits.
SmallVector<Value> LayerNormOp::decomposeWithCount(OpBuilder &builder, CountFn buildCount) {
  Rows rows(*this, builder);
  Build &b = rows.b;
  Value count = rows.b.wide(buildCount(getInput(), rows.last)), x = rows.b.wide(getInput());
  Value mean = b.div(rows.sum(x), count);
  Value centered = b.sub(x, mean);
  Value rstd = rows.inverseRoot(b.div(rows.sum(b.mul(centered, centered)), count));
  Value scaled = b.mul(b.mul(centered, rstd), rows.b.wide(getScale()));
  return {rows.narrow(b.add(scaled, rows.b.wide(getBias()))), rows.drop(mean), rows.drop(rstd)};
}

SmallVector<Value> RmsNormOp::decomposeWithCount(OpBuilder &builder, CountFn buildCount) {
  Rows rows(*this, builder);
  Build &b = rows.b;
  Value count = rows.b.wide(buildCount(getInput(), rows.last)), x = rows.b.wide(getInput());
  Value rstd = rows.inverseRoot(b.div(rows.sum(b.mul(x, x)), count));
  return {rows.narrow(b.mul(b.mul(x, rstd), rows.b.wide(getScale()))), rows.drop(rstd)};
}

/// Divided by the whole dimension's size, whatever a device has of it.
template <typename NormOp> static Values decomposeRowNorm(NormOp op, OpBuilder &builder) {
  Rows rows(op, builder);
  return op.decomposeWithCount(builder, [&](ValueRange, ArrayRef<int64_t>) {
    return rows.b.scalar(computeType(rows.type.getElementType()), double(rows.type.getDimSize(rows.last)));
  });
}

Values LayerNormOp::decompose(OpBuilder &builder) { return decomposeRowNorm(*this, builder); }
Values RmsNormOp::decompose(OpBuilder &builder) { return decomposeRowNorm(*this, builder); }

Values LayerNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                             const llvm::BitVector &needed) {
  Rows rows(*this, builder);
  Build &b = rows.b;
  Value ct = cotangents[0], rstd = rows.keep(getRstd());
  Value xhat = b.mul(b.sub(rows.b.wide(getInput()), rows.keep(getMean())), rstd);
  SmallVector<Value> result(3);
  if (needed.test(0))
    result[0] = rows.inputCotangent(xhat, rstd, ct, cotangents[1], cotangents[2], /*hasMean=*/true);
  if (needed.test(1) && ct)
    result[1] = rows.sumOfRows(b.mul(rows.b.wide(ct), xhat));
  if (needed.test(2) && ct)
    result[2] = rows.sumOfRows(ct);
  return result;
}

Values RmsNormOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                           const llvm::BitVector &needed) {
  Rows rows(*this, builder);
  Build &b = rows.b;
  Value ct = cotangents[0], rstd = rows.keep(getRstd());
  Value xhat = b.mul(rows.b.wide(getInput()), rstd);
  SmallVector<Value> result(2);
  if (needed.test(0))
    result[0] = rows.inputCotangent(xhat, rstd, ct, Value(), cotangents[1], /*hasMean=*/false);
  if (needed.test(1) && ct)
    result[1] = rows.sumOfRows(b.mul(rows.b.wide(ct), xhat));
  return result;
}
