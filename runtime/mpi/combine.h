// What a reduction does to two elements, the same however they reach each other. Maxima
// and minima of floats keep NaN; booleans are bytes, whose maximum is or and minimum and.
#ifndef SHOAL_RT_MPI_COMBINE_H
#define SHOAL_RT_MPI_COMBINE_H

#include "shoal-rt/program.h"

namespace shoal::rt {

template <Reduction kind, typename T> inline T combine(T a, T b) {
  if constexpr (kind == Reduction::Sum)
    return a + b;
  else if constexpr (kind == Reduction::Max)
    return a > b || a != a ? a : b;
  else
    return a < b || a != a ? a : b;
}

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_COMBINE_H
