// Functions that fall to 0 like exponentials as straight-line arithmetic, with all digits also far
// out where they are tiny: the complement of the error function and the normal distribution.
#ifndef SHOAL_LIB_CONVERSION_ERRORFUNCTION_H
#define SHOAL_LIB_CONVERSION_ERRORFUNCTION_H

#include "LinalgBuilder.h"

namespace shoal::lowering {

/// e^exponent for an exponent of at most 0, in two factors where it is below e^-64: what is left of
/// a product with it in the subnormal numbers is rounded once, with its last factor. The unit,
/// e^-64, hides behind a select, since products are reassociated.
struct FarExponential {
  mlir::Value value;
  mlir::Value isFar; // whether the unit is missing
  mlir::Value timesUnit(Scalars &s, mlir::Value x) const;
};
FarExponential farExponential(Scalars &s, mlir::Value exponent);

/// erfc(x) = 1 - erf(x), of f32 or f64.
mlir::Value complementaryError(Scalars &s, mlir::Value x);
/// x times the normal distribution function of x, erfc(-x / sqrt(2)) / 2.
mlir::Value timesNormalDistribution(Scalars &s, mlir::Value x);

} // namespace shoal::lowering

#endif // SHOAL_LIB_CONVERSION_ERRORFUNCTION_H
