// Plain loops over independent elements, which compilers vectorise: sums and maxima are kept in
// lanes, since floats may not be reordered behind the program's back. Each pass is compiled for
// any processor of the architecture and, on x86-64, for AVX2 and AVX-512.
#include "host/row_passes.h"

#include <bit>
#include <limits>

namespace shoal::rt {
namespace {

#define SHOAL_INLINE inline __attribute__((always_inline))

template <typename T> constexpr int64_t kLanes = 128 / sizeof(T);

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln(2) / 2, where the Taylor series to
// `degree` is exact to rounding. ln 2 has two parts, of which n times the first is exact.
template <typename T> struct ExpConstants;
template <> struct ExpConstants<float> {
  using Bits = uint32_t;
  static constexpr int degree = 7, mantissa = 23;
  static constexpr Bits bias = 127;
  static constexpr float least = -87.0f, most = 88.0f;
  static constexpr float ln2High = 0x1.62e4p-1f, ln2Low = 0x1.7f7d1cp-20f;
  static constexpr float round = 0x1.8p23f; // adding it leaves no fraction
};
template <> struct ExpConstants<double> {
  using Bits = uint64_t;
  static constexpr int degree = 13, mantissa = 52;
  static constexpr Bits bias = 1023;
  static constexpr double least = -708.0, most = 709.0;
  static constexpr double ln2High = 0x1.62e42feep-1, ln2Low = 0x1.a39ef35793c76p-33;
  static constexpr double round = 0x1.8p52;
};

template <typename T> constexpr T inverseFactorial(int k) {
  double factorial = 1;
  for (int i = 2; i <= k; ++i)
    factorial *= i;
  return T(1 / factorial);
}

template <typename T> SHOAL_INLINE T exponential(T x) {
  using C = ExpConstants<T>;
  using Bits = typename C::Bits;
  // Both comparisons are false for NaN, which so reaches the result.
  T clamped = x < C::least ? C::least : x;
  clamped = clamped > C::most ? C::most : clamped;
  T shifted = clamped * T(1.4426950408889634) + C::round;
  T n = shifted - C::round;
  T r = clamped - n * C::ln2High - n * C::ln2Low;
  T sum = inverseFactorial<T>(C::degree);
#pragma GCC unroll 16
  for (int k = C::degree - 1; k >= 0; --k)
    sum = sum * r + inverseFactorial<T>(k);
  // The low bits of `shifted` are n.
  Bits power = (std::bit_cast<Bits>(shifted) + C::bias) << C::mantissa;
  T result = sum * std::bit_cast<T>(power);
  return x < C::least ? T(0) : result;
}

template <typename T, typename Op> SHOAL_INLINE T joinLanes(T *lanes, Op op) {
  for (int64_t width = kLanes<T> / 2; width != 0; width /= 2)
    for (int64_t i = 0; i < width; ++i)
      lanes[i] = op(lanes[i], lanes[i + width]);
  return lanes[0];
}

// Combines all elements, as element(i) yields them, in lanes.
template <typename T, typename Element, typename Op>
SHOAL_INLINE T combineAll(int64_t size, T start, Element element, Op op) {
  T lanes[kLanes<T>];
  for (int64_t l = 0; l < kLanes<T>; ++l)
    lanes[l] = start;
  int64_t i = 0;
  for (; i + kLanes<T> <= size; i += kLanes<T>)
    for (int64_t l = 0; l < kLanes<T>; ++l)
      lanes[l] = op(lanes[l], element(i + l));
  for (int64_t l = 0; i + l < size; ++l)
    lanes[l] = op(lanes[l], element(i + l));
  return joinLanes(lanes, op);
}

template <typename T> SHOAL_INLINE T maxOf(const T *row, int64_t size) {
  return combineAll(
      size, -std::numeric_limits<T>::infinity(), [&](int64_t i) { return row[i]; },
      [](T a, T b) { return b > a ? b : a; });
}

template <typename T> SHOAL_INLINE T expAndSumOf(T *row, int64_t size, T shift) {
  for (int64_t i = 0; i < size; ++i)
    row[i] = exponential(row[i] - shift);
  return combineAll(
      size, T(0), [&](int64_t i) { return row[i]; }, [](T a, T b) { return a + b; });
}

template <typename T> SHOAL_INLINE void scaleOf(T *row, int64_t size, T factor) {
  for (int64_t i = 0; i < size; ++i)
    row[i] *= factor;
}

template <typename T> SHOAL_INLINE T dotOf(const T *a, const T *b, int64_t size) {
  return combineAll(
      size, T(0), [&](int64_t i) { return a[i] * b[i]; }, [](T x, T y) { return x + y; });
}

template <typename T>
SHOAL_INLINE void subtractAndWeighOf(T *row, const T *__restrict weights, int64_t size, T shift) {
  for (int64_t i = 0; i < size; ++i)
    row[i] = weights[i] * (row[i] - shift);
}

// One set of passes for one target; ATTRIBUTE names it.
#define SHOAL_ROW_PASSES(NAME, ATTRIBUTE)                                                          \
  template <typename T> struct NAME {                                                              \
    ATTRIBUTE static T max(const T *row, int64_t size) { return maxOf(row, size); }                \
    ATTRIBUTE static T expAndSum(T *row, int64_t size, T shift) {                                  \
      return expAndSumOf(row, size, shift);                                                        \
    }                                                                                              \
    ATTRIBUTE static void scale(T *row, int64_t size, T factor) { scaleOf(row, size, factor); }    \
    ATTRIBUTE static T dot(const T *a, const T *b, int64_t size) { return dotOf(a, b, size); }     \
    ATTRIBUTE static void subtractAndWeigh(T *row, const T *weights, int64_t size, T shift) {      \
      subtractAndWeighOf(row, weights, size, shift);                                               \
    }                                                                                              \
    static constexpr RowPasses<T> passes = {max, expAndSum, scale, dot, subtractAndWeigh};         \
  };

SHOAL_ROW_PASSES(Baseline, )
#if defined(__x86_64__)
SHOAL_ROW_PASSES(Avx2, __attribute__((target("avx2,fma"))))
SHOAL_ROW_PASSES(Avx512, __attribute__((target("avx512f,avx2,fma"))))
#endif

} // namespace

template <typename T> std::vector<RowPasses<T>> runnableRowPasses() {
  std::vector<RowPasses<T>> runnable;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    runnable.push_back(Avx512<T>::passes);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    runnable.push_back(Avx2<T>::passes);
#endif
  runnable.push_back(Baseline<T>::passes);
  return runnable;
}

template std::vector<RowPasses<float>> runnableRowPasses();
template std::vector<RowPasses<double>> runnableRowPasses();

} // namespace shoal::rt
