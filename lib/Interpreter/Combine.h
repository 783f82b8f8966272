// How partial values become one, element by element.
#ifndef SHOAL_LIB_INTERPRETER_COMBINE_H
#define SHOAL_LIB_INTERPRETER_COMBINE_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Interpreter/Tensor.h"

#include <algorithm>
#include <cmath>

namespace shoal::interp {

/// NaN propagates.
inline double combine(dist::ReduceKindAttrEnum kind, double a, double b) {
  if (kind == dist::ReduceKindAttrEnum::sum || std::isnan(a) || std::isnan(b))
    return a + b;
  return kind == dist::ReduceKindAttrEnum::max ? std::max(a, b) : std::min(a, b);
}

/// Sums wrap around.
inline int64_t combine(dist::ReduceKindAttrEnum kind, int64_t a, int64_t b) {
  if (kind == dist::ReduceKindAttrEnum::sum)
    return int64_t(uint64_t(a) + uint64_t(b));
  return kind == dist::ReduceKindAttrEnum::max ? std::max(a, b) : std::min(a, b);
}

/// Every element of `into` with its counterpart in `other`.
inline void combine(dist::ReduceKindAttrEnum kind, Tensor &into, const Tensor &other) {
  for (int64_t k = 0; k < into.size(); ++k)
    if (into.isFloat())
      into.f[k] = combine(kind, into.f[k], other.f[k]);
    else
      into.i[k] = combine(kind, into.i[k], other.i[k]);
}

} // namespace shoal::interp

#endif // SHOAL_LIB_INTERPRETER_COMBINE_H
