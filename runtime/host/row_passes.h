// What attention does to rows of scores between its matrix products, compiled for the vector
// units of several processors and chosen at run time.
#ifndef SHOAL_RT_HOST_ROW_PASSES_H
#define SHOAL_RT_HOST_ROW_PASSES_H

#include <cstdint>
#include <vector>

namespace shoal::rt {

template <typename T> struct RowPasses {
  // The largest element, -inf when there is none. NaN is passed over.
  T (*max)(const T *row, int64_t size);
  // row = exp(row - shift), and its sum. NaN stays NaN. An element is right to two units in the
  // last place, and 0 below the smallest normal number; row - shift stays below the largest
  // logarithm.
  T (*expAndSum)(T *row, int64_t size, T shift);
  // row *= factor
  void (*scale)(T *row, int64_t size, T factor);
  // The sum of a * b.
  T (*dot)(const T *a, const T *b, int64_t size);
  // row = weights * (row - shift)
  void (*subtractAndWeigh)(T *row, const T *weights, int64_t size, T shift);
};

// The passes this processor can run, the fastest first. T: float, double.
template <typename T> std::vector<RowPasses<T>> runnableRowPasses();

template <typename T> const RowPasses<T> &rowPasses() {
  static const RowPasses<T> passes = runnableRowPasses<T>().front();
  return passes;
}

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_ROW_PASSES_H
