// Single precision by MLIR's polynomials, but for sines and powers, which go through double. Double
// precision by the textbook: argument reduction with ln 2 in two parts and pi/2 in three, and series
// long enough that what is cut off is below the rounding; errors are a few units in the last place.
// The tests hold all of them against the C library.
#include "ExpandMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>
#include <numbers>

namespace shoal::codegen {
namespace {

using namespace mlir;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

// fdlibm, e_exp.c: the low part has what the high part, of 32 bits, lacks.
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Arithmetic on f64 and its bits.
struct Doubles {
  OpBuilder &b;
  Location loc;

  Value f(double value) {
    return b.create<arith::ConstantOp>(loc, b.getF64FloatAttr(value));
  }
  Value i(int64_t value) {
    return b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
  }
  Value add(Value x, Value y) { return b.create<arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) { return b.create<arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) { return b.create<arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) { return b.create<arith::DivFOp>(loc, x, y); }
  Value fma(Value x, Value y, Value z) { return b.create<math::FmaOp>(loc, x, y, z); }
  Value abs(Value x) { return b.create<math::AbsFOp>(loc, x); }
  Value exp(Value x) { return b.create<math::ExpOp>(loc, x); }
  Value withSignOf(Value x, Value y) { return b.create<math::CopySignOp>(loc, x, y); }
  Value compare(CmpFPredicate predicate, Value x, Value y) {
    return b.create<arith::CmpFOp>(loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return b.create<arith::SelectOp>(loc, condition, x, y);
  }
  Value bits(Value x) { return b.create<arith::BitcastOp>(loc, b.getI64Type(), x); }
  Value fromBits(Value x) { return b.create<arith::BitcastOp>(loc, b.getF64Type(), x); }
  Value toInteger(Value x) { return b.create<arith::FPToSIOp>(loc, b.getI64Type(), x); }
  Value toDouble(Value x) { return b.create<arith::SIToFPOp>(loc, b.getF64Type(), x); }
  /// 2^n for -1022 <= n <= 1023.
  Value powerOfTwo(Value n) {
    return fromBits(b.create<arith::ShLIOp>(loc, b.create<arith::AddIOp>(loc, n, i(1023)), i(52)));
  }
  /// c[0] + c[1] x + c[2] x^2 + ...
  Value polynomial(ArrayRef<double> c, Value x) {
    Value sum = f(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      sum = fma(sum, x, f(coefficient));
    return sum;
  }
  /// `value` after body has been applied to it for k = count, ..., 1.
  Value countDown(int64_t count, Value value, function_ref<Value(Value k, Value value)> body) {
    auto index = [&](int64_t n) -> Value { return b.create<arith::ConstantIndexOp>(loc, n); };
    auto loop = b.create<scf::ForOp>(loc, index(0), index(count), index(1), value);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value done = b.create<arith::IndexCastOp>(loc, b.getI64Type(), loop.getInductionVar());
    Value k = toDouble(b.create<arith::SubIOp>(loc, i(count), done));
    b.create<scf::YieldOp>(loc, body(k, loop.getRegionIterArg(0)));
    return loop.getResult(0);
  }
};

/// exp(x) = 2^n exp(x - n ln 2).
Value expandExp(Doubles &d, Value x) {
  Value isNumber = d.compare(CmpFPredicate::ORD, x, x);
  // Past these everything is 0 or infinity, and 2^n two factors with exponents in range.
  Value clamped = d.b.create<arith::MinimumFOp>(d.loc, x, d.f(710));
  clamped = d.b.create<arith::MaximumFOp>(d.loc, clamped, d.f(-746));
  clamped = d.select(isNumber, clamped, d.f(0));
  Value n = d.b.create<math::RoundEvenOp>(d.loc, d.mul(clamped, d.f(std::numbers::log2e)));
  Value r = d.fma(n, d.f(-kLn2High), clamped);
  r = d.fma(n, d.f(-kLn2Low), r);
  SmallVector<double> taylor{1};
  for (int k = 1; k <= 13; ++k) // 0.35^14 / 14! < 2^-57
    taylor.push_back(taylor.back() / k);
  Value power = d.toInteger(n);
  Value half = d.b.create<arith::ShRSIOp>(d.loc, power, d.i(1));
  Value other = d.b.create<arith::SubIOp>(d.loc, power, half);
  Value result =
      d.mul(d.mul(d.polynomial(taylor, r), d.powerOfTwo(half)), d.powerOfTwo(other));
  return d.select(isNumber, result, x);
}

/// log(2^e m) = e ln 2 + 2 artanh((m - 1) / (m + 1)), with m between sqrt(1/2) and sqrt(2).
Value expandLog(Doubles &d, Value x) {
  Value isSubnormal = d.compare(CmpFPredicate::OLT, x, d.f(std::numeric_limits<double>::min()));
  Value scaled = d.select(isSubnormal, d.mul(x, d.f(0x1p54)), x);
  Value bits = d.bits(scaled);
  Value exponent = d.b.create<arith::SubIOp>(
      d.loc, d.b.create<arith::ShRUIOp>(d.loc, bits, d.i(52)),
      d.b.create<arith::SelectOp>(d.loc, isSubnormal, d.i(1023 + 54), d.i(1023)));
  Value fraction = d.b.create<arith::AndIOp>(d.loc, bits, d.i((int64_t(1) << 52) - 1));
  Value m = d.fromBits(d.b.create<arith::OrIOp>(d.loc, fraction, d.i(int64_t(1023) << 52)));
  Value isLarge = d.compare(CmpFPredicate::OGT, m, d.f(std::numbers::sqrt2));
  m = d.select(isLarge, d.mul(m, d.f(0.5)), m);
  Value e = d.add(d.toDouble(exponent), d.select(isLarge, d.f(1), d.f(0)));
  Value s = d.div(d.sub(m, d.f(1)), d.add(m, d.f(1)));
  SmallVector<double> series;
  for (int k = 1; k <= 11; ++k) // 0.172^24 / 25 < 2^-65
    series.push_back(2.0 / (2 * k + 1));
  Value z = d.mul(s, s);
  Value tail = d.mul(d.mul(s, z), d.polynomial(series, z));
  Value low = d.fma(e, d.f(kLn2Low), tail);
  Value result = d.fma(e, d.f(kLn2High), d.add(d.add(s, s), low));
  result = d.select(d.compare(CmpFPredicate::OEQ, x, d.f(kInfinity)), x, result);
  result = d.select(d.compare(CmpFPredicate::OEQ, x, d.f(0)), d.f(-kInfinity), result);
  return d.select(d.compare(CmpFPredicate::UGE, x, d.f(0)),
                  d.select(d.compare(CmpFPredicate::ORD, x, x), result, x), d.f(kNaN));
}

/// exp(y log|x|) with the sign that a whole y gives. Its relative error grows with |y log x|.
Value expandPow(Doubles &d, Value x, Value y) {
  Value result = d.exp(d.mul(y, d.b.create<math::LogOp>(d.loc, d.abs(x))));
  auto isWhole = [&](Value v) {
    return d.compare(CmpFPredicate::OEQ, d.b.create<math::FloorOp>(d.loc, v), v);
  };
  Value isOdd = d.b.create<arith::XOrIOp>(
      d.loc, isWhole(d.mul(y, d.f(0.5))),
      d.b.create<arith::ConstantOp>(d.loc, d.b.getBoolAttr(true)));
  Value negated = d.b.create<arith::NegFOp>(d.loc, result);
  Value ofNegative =
      d.select(isWhole(y), d.select(isOdd, negated, result), d.f(kNaN));
  result = d.select(d.compare(CmpFPredicate::OLT, x, d.f(0)), ofNegative, result);
  Value isOne = d.b.create<arith::OrIOp>(d.loc, d.compare(CmpFPredicate::OEQ, y, d.f(0)),
                                         d.compare(CmpFPredicate::OEQ, x, d.f(1)));
  return d.select(isOne, d.f(1), result);
}

/// sinh / cosh by their series near 0, where the other form, 1 - 2 / (exp(2|x|) + 1), cancels.
Value expandTanh(Doubles &d, Value x) {
  SmallVector<double> sinh, cosh;
  double factor = 1;
  for (int k = 0; k <= 9; ++k) { // 0.4^10 / 20! < 2^-70
    cosh.push_back(factor);
    sinh.push_back(factor /= 2 * k + 1);
    factor /= 2 * k + 2;
  }
  Value square = d.mul(x, x), magnitude = d.abs(x);
  Value near = d.div(d.mul(x, d.polynomial(sinh, square)), d.polynomial(cosh, square));
  Value twice = d.exp(d.add(magnitude, magnitude));
  Value far = d.withSignOf(d.sub(d.f(1), d.div(d.f(2), d.add(twice, d.f(1)))), x);
  return d.select(d.compare(CmpFPredicate::OLT, magnitude, d.f(0.625)), near, far);
}

/// Abramowitz and Stegun, 7.1.6 (a series of positive terms) below 3 and 7.1.14 (a continued
/// fraction of the complement, which is below 1e-4 there) above.
Value expandErf(Doubles &d, Value x) {
  Value magnitude = d.abs(x), square = d.mul(x, x);
  Value bell = d.exp(d.mul(square, d.f(-1)));
  Value twice = d.add(square, square);
  Value series = d.countDown(70, d.f(1), [&](Value k, Value sum) { // 18^70 / 141!! < 2^-60
    Value odd = d.fma(k, d.f(2), d.f(1));
    return d.fma(d.div(twice, odd), sum, d.f(1));
  });
  Value near = d.mul(d.mul(magnitude, d.f(2 * std::numbers::inv_sqrtpi)), d.mul(bell, series));
  Value fraction = d.countDown(60, magnitude, [&](Value k, Value rest) {
    return d.add(magnitude, d.div(d.mul(k, d.f(0.5)), rest));
  });
  Value far = d.sub(d.f(1), d.div(d.mul(bell, d.f(std::numbers::inv_sqrtpi)), fraction));
  Value isNear = d.compare(CmpFPredicate::OLT, magnitude, d.f(3));
  return d.withSignOf(d.select(isNear, near, far), x);
}

// pi/2 in three parts, each the nearest to what the parts before it lack (fma keeps their products
// whole).
constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

/// sin(x + quarters pi/2) by the series of sine or cosine at what x lacks to a multiple of pi/2.
/// Past 2^45, where the multiple itself loses digits, the answer is NaN and not a guess.
Value expandSinOf(Doubles &d, Value x, int64_t quarters) {
  SmallVector<double> sine, cosine;
  double factor = 1;
  for (int k = 0; k <= 9; ++k) { // 0.79^20 / 20! < 2^-67
    cosine.push_back(factor);
    sine.push_back(factor /= 2 * k + 1);
    factor /= -(2 * k + 2);
  }
  Value isSmall = d.compare(CmpFPredicate::OLT, d.abs(x), d.f(0x1p45));
  Value known = d.select(isSmall, x, d.f(0));
  Value n = d.b.create<math::RoundEvenOp>(d.loc, d.mul(known, d.f(2 * std::numbers::inv_pi)));
  Value negated = d.mul(n, d.f(-1)), r = known;
  for (double part : kHalfPi)
    r = d.fma(negated, d.f(part), r);
  Value quarter = d.b.create<arith::AddIOp>(d.loc, d.toInteger(n), d.i(quarters));
  auto hasBit = [&](int64_t bit) -> Value {
    Value masked = d.b.create<arith::AndIOp>(d.loc, quarter, d.i(bit));
    return d.b.create<arith::CmpIOp>(d.loc, CmpIPredicate::ne, masked, d.i(0));
  };
  Value square = d.mul(r, r);
  Value magnitude =
      d.select(hasBit(1), d.polynomial(cosine, square), d.mul(r, d.polynomial(sine, square)));
  Value result = d.select(hasBit(2), d.mul(magnitude, d.f(-1)), magnitude);
  return d.select(isSmall, result, d.f(kNaN));
}
Value expandSin(Doubles &d, Value x) { return expandSinOf(d, x, 0); }
Value expandCos(Doubles &d, Value x) { return expandSinOf(d, x, 1); }

template <typename Op, Value (*expand)(Doubles &, Value)>
struct ExpandDouble : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF64())
      return rewriter.notifyMatchFailure(op, "not f64");
    Doubles d{rewriter, op.getLoc()};
    rewriter.replaceOp(op, expand(d, op.getOperand()));
    return success();
  }
};

/// MLIR's sine of f32 loses what the multiple of pi/2 takes from it, already at 10^4; in f64 the
/// multiple is exact.
template <typename Op, Value (*expand)(Doubles &, Value)>
struct ExpandWide : OpRewritePattern<Op> {
  explicit ExpandWide(MLIRContext *context) : OpRewritePattern<Op>(context, /*benefit=*/2) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Doubles d{rewriter, op.getLoc()};
    Value wide = rewriter.create<arith::ExtFOp>(op.getLoc(), rewriter.getF64Type(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), expand(d, wide));
    return success();
  }
};

/// Powers of f32 are computed in f64: they are few, and a product with a logarithm loses digits.
struct ExpandPow : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    Doubles d{rewriter, op.getLoc()};
    if (type.isF64()) {
      rewriter.replaceOp(op, expandPow(d, op.getLhs(), op.getRhs()));
      return success();
    }
    if (!type.isF32())
      return rewriter.notifyMatchFailure(op, "neither f32 nor f64");
    auto wide = [&](Value x) -> Value {
      return rewriter.create<arith::ExtFOp>(op.getLoc(), rewriter.getF64Type(), x);
    };
    Value power = expandPow(d, wide(op.getLhs()), wide(op.getRhs()));
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, power);
    return success();
  }
};

/// PTX has an instruction for it, or LLVM a short sequence.
bool isNative(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::FloorOp, math::FmaOp,
             math::RoundEvenOp, math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

} // namespace

LogicalResult expandMathForGPU(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  patterns.add<ExpandDouble<math::ExpOp, expandExp>, ExpandDouble<math::LogOp, expandLog>,
               ExpandDouble<math::TanhOp, expandTanh>, ExpandDouble<math::ErfOp, expandErf>,
               ExpandDouble<math::SinOp, expandSin>, ExpandDouble<math::CosOp, expandCos>,
               ExpandWide<math::SinOp, expandSin>, ExpandWide<math::CosOp, expandCos>,
               ExpandPow>(root->getContext());
  populateMathPolynomialApproximationPatterns(patterns);
  arith::populateExpandBFloat16Patterns(patterns);
  if (failed(applyPatternsAndFoldGreedily(root, std::move(patterns))))
    return failure();
  WalkResult walk = root->walk([](Operation *op) -> WalkResult {
    if (!isa<math::MathDialect>(op->getDialect()) || isNative(op))
      return WalkResult::advance();
    return op->emitOpError("has no expansion to PTX for ") << op->getResultTypes().front();
  });
  return failure(walk.wasInterrupted());
}

} // namespace shoal::codegen
