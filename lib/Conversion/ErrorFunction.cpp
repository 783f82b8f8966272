// For a >= 0, erfc(a) is e^(-a^2) times a smooth function that (1 + 2a) keeps between 1 and 1.3; one
// polynomial in (a - K) / (a + K) has it for all a (Shepherd & Laframboise, Math. Comp. 36, 1981), so
// there are no branches and loops vectorize. What a^2 loses to rounding is multiplied back in.
#include "ErrorFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace shoal::lowering {
namespace {

constexpr double kFar = 64; // e^-64 is nothing beside 1 in any type

/// Interpolation of (1 + 2a) e^(a^2) erfc(a) at the Chebyshev nodes of 0 <= a <= 30, computed with 60
/// digits; ascending powers of (a - center) / (a + center).
struct ScaledComplement {
  double center;
  ArrayRef<double> coefficients;
};

constexpr double kSingle[] = { // relative error below 4e-9
    1.253008057,   -0.1356210724,  -0.04756223082, 0.1296441409,
    -0.1192743712, 0.06831677356,  -0.02376738262, 0.002497247452,
    0.001881549421, -0.0007222736927, -9.636902995e-05, 7.444128246e-05};

constexpr double kDouble[] = { // relative error below 2e-17
    1.2375126308378275,      -0.14024059858554666,    0.0035854154854647684,
    0.082276738490109733,    -0.10880393014176631,    0.092304321161584296,
    -0.058693398589163406,   0.028362277400088419,    -0.0097465795658129625,
    0.0017556260158476966,   0.00029371374295995807,  -0.0002901549328966874,
    5.1648627266575505e-05,  2.2387063389949446e-05,  -1.1442344708679574e-05,
    -9.7956099799584179e-07, 1.7472879478286034e-06,  -4.9197737918934411e-08,
    -2.5213246116656019e-07, 1.6940269362281982e-08,  3.2888438572773146e-08,
    -1.2326394490875055e-09, -2.5345220081597656e-09};

Value fma(Scalars &s, Value x, Value y, Value z) {
  return s.b.create<math::FmaOp>(s.loc, x, y, z);
}

/// |x|, but at most `limit`, past which nothing is left of the bell; NaN stays.
Value magnitude(Scalars &s, Value x, double limit) {
  return s.min(s.b.create<math::AbsFOp>(s.loc, x), s.constant(x.getType(), limit));
}

/// e^(-factor a^2) for a power of two `factor`, where it is tiny without the unit.
FarExponential bell(Scalars &s, Value a, double factor) {
  auto c = [&](double value) { return s.constant(a.getType(), value); };
  Value square = s.mul(a, a);
  Value lost = fma(s, a, a, s.b.create<arith::NegFOp>(s.loc, square)); // a^2 - square, exactly
  FarExponential e = farExponential(s, s.mul(square, c(-factor)));
  e.value = fma(s, e.value, s.mul(lost, c(-factor)), e.value); // lost is tiny, so that e^-lost is 1 - lost
  return e;
}

/// erfc(a) / e^(-a^2) for a >= 0.
Value scaledComplement(Scalars &s, Value a) {
  auto c = [&](double value) { return s.constant(a.getType(), value); };
  ScaledComplement table = a.getType().isF64() ? ScaledComplement{3.75, kDouble} : ScaledComplement{3, kSingle};
  Value q = s.div(s.sub(a, c(table.center)), s.add(a, c(table.center)));
  Value sum = c(table.coefficients.back());
  for (double coefficient : llvm::reverse(table.coefficients.drop_back()))
    sum = fma(s, sum, q, c(coefficient));
  return s.div(sum, fma(s, a, c(2), c(1)));
}

Value isBelowZero(Scalars &s, Value x) {
  return s.b.create<arith::CmpFOp>(s.loc, arith::CmpFPredicate::OLT, x, s.constant(x.getType(), 0));
}

} // namespace

FarExponential farExponential(Scalars &s, Value exponent) {
  auto c = [&](double value) { return s.constant(exponent.getType(), value); };
  Value isFar = s.b.create<arith::CmpFOp>(s.loc, arith::CmpFPredicate::OLT, exponent, c(-kFar));
  return {s.exp(s.select(isFar, s.add(exponent, c(kFar)), exponent)), isFar};
}

Value FarExponential::timesUnit(Scalars &s, Value x) const {
  return s.select(isFar, s.mul(x, s.constant(x.getType(), std::exp(-kFar))), x);
}

Value complementaryError(Scalars &s, Value x) {
  Value a = magnitude(s, x, 28);
  FarExponential e = bell(s, a, 1);
  Value tail = s.mul(e.timesUnit(s, scaledComplement(s, a)), e.value);
  return s.select(isBelowZero(s, x), s.sub(s.constant(x.getType(), 2), tail), tail);
}

Value timesNormalDistribution(Scalars &s, Value x) {
  auto c = [&](double value) { return s.constant(x.getType(), value); };
  Value a = magnitude(s, x, 39);
  FarExponential e = bell(s, a, 0.5);
  Value tail = s.mul(s.mul(e.value, c(0.5)), scaledComplement(s, s.mul(a, c(1 / std::numbers::sqrt2))));
  Value below = s.mul(e.timesUnit(s, x), tail);
  Value above = s.mul(x, s.sub(c(1), s.select(e.isFar, c(0), tail)));
  return s.select(isBelowZero(s, x), below, above);
}

} // namespace shoal::lowering
