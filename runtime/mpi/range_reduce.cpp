// A cache line at a time: summed over the inputs in registers, stored to every output. The
// loops are compiled twice on x86-64, for any of its processors and for AVX2, and chosen at run time.
#include "mpi/range_reduce.h"
#include "core/element.h"
#include "mpi/combine.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shoal::rt {
namespace {

#define SHOAL_INLINE inline __attribute__((always_inline))

constexpr uint64_t kLine = 64;

struct BFloat16 {
  using Stored = uint16_t;
  using Sum = float;
  static SHOAL_INLINE float load(uint16_t bits) { return bf16ToFloat(bits); }
  static SHOAL_INLINE uint16_t store(float value) { return floatToBf16(value); }
};

template <typename T> struct Plain {
  using Stored = T;
  using Sum = T;
  static SHOAL_INLINE T load(T value) { return value; }
  static SHOAL_INLINE T store(T value) { return value; }
};

template <typename Stored, uint64_t count> struct Line {
  Stored elements[count];
};

// Reduces `count` elements, a constant for whole lines, at `offset` bytes of all buffers.
template <Reduction kind, typename Element, uint64_t most>
SHOAL_INLINE Line<typename Element::Stored, most> reduceLine(const RangeBuffers &buffers,
                                                             uint64_t offset, uint64_t count) {
  using Stored = typename Element::Stored;
  typename Element::Sum sums[most];
  const Stored *first = reinterpret_cast<const Stored *>(buffers.in[0] + offset);
  for (uint64_t i = 0; i < count; ++i)
    sums[i] = Element::load(first[i]);
  for (uint32_t rank = 1; rank < buffers.inputs; ++rank) {
    const Stored *next = reinterpret_cast<const Stored *>(buffers.in[rank] + offset);
    for (uint64_t i = 0; i < count; ++i)
      sums[i] = combine<kind>(sums[i], Element::load(next[i]));
  }
  Line<Stored, most> line;
  for (uint64_t i = 0; i < count; ++i)
    line.elements[i] = Element::store(sums[i]);
  return line;
}

// Stores that do not fetch the line they overwrite, and what orders them before a release. `to`
// is aligned to kStreamBytes.
#if defined(__x86_64__)
constexpr uint64_t kStreamBytes = sizeof(__m128i);
SHOAL_INLINE void streamLine(char *to, const void *line) {
  for (uint64_t i = 0; i < kLine / sizeof(__m128i); ++i)
    _mm_stream_si128(reinterpret_cast<__m128i *>(to) + i,
                     _mm_loadu_si128(static_cast<const __m128i *>(line) + i));
}
SHOAL_INLINE void endStreaming() { _mm_sfence(); }
#else
constexpr uint64_t kStreamBytes = 1;
SHOAL_INLINE void streamLine(char *to, const void *line) { std::memcpy(to, line, kLine); }
SHOAL_INLINE void endStreaming() {}
#endif

template <Reduction kind, typename Element>
SHOAL_INLINE void reduceRange(const RangeBuffers &buffers, uint64_t offset, uint64_t bytes,
                              bool stream) {
  constexpr uint64_t perLine = kLine / sizeof(typename Element::Stored);
  // Outputs lie alike on all ranks. A bucket's part may lie anywhere.
  stream &= reinterpret_cast<uintptr_t>(buffers.out[0] + offset) % kStreamBytes == 0;
  uint64_t end = offset + bytes;
  for (; offset + kLine <= end; offset += kLine) {
    auto line = reduceLine<kind, Element, perLine>(buffers, offset, perLine);
    for (uint32_t rank = 0; rank < buffers.outputs; ++rank) {
      if (stream)
        streamLine(buffers.out[rank] + offset, &line);
      else
        std::memcpy(buffers.out[rank] + offset, &line, kLine);
    }
  }
  if (offset < end) {
    auto line = reduceLine<kind, Element, perLine>(
        buffers, offset, (end - offset) / sizeof(typename Element::Stored));
    for (uint32_t rank = 0; rank < buffers.outputs; ++rank)
      std::memcpy(buffers.out[rank] + offset, &line, end - offset);
  }
  if (stream)
    endStreaming();
}

template <Reduction kind, typename Element>
void reduceBaseline(const RangeBuffers &buffers, uint64_t offset, uint64_t bytes, bool stream) {
  reduceRange<kind, Element>(buffers, offset, bytes, stream);
}

#if defined(__x86_64__)
template <Reduction kind, typename Element>
__attribute__((target("avx2"))) void reduceAvx2(const RangeBuffers &buffers, uint64_t offset,
                                                uint64_t bytes, bool stream) {
  reduceRange<kind, Element>(buffers, offset, bytes, stream);
}

template <Reduction kind, typename Element> RangeReduce chooseTarget() {
  static const bool avx2 = __builtin_cpu_supports("avx2");
  return avx2 ? reduceAvx2<kind, Element> : reduceBaseline<kind, Element>;
}
#else
template <Reduction kind, typename Element> RangeReduce chooseTarget() {
  return reduceBaseline<kind, Element>;
}
#endif

template <typename Element> RangeReduce choose(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum:
    return chooseTarget<Reduction::Sum, Element>();
  case Reduction::Max:
    return chooseTarget<Reduction::Max, Element>();
  case Reduction::Min:
    return chooseTarget<Reduction::Min, Element>();
  }
  return nullptr;
}

} // namespace

RangeReduce rangeReduce(DType type, Reduction reduction) {
  switch (type) {
  case DType::F32:
    return choose<Plain<float>>(reduction);
  case DType::F64:
    return choose<Plain<double>>(reduction);
  case DType::BF16:
    return choose<BFloat16>(reduction);
  case DType::I32:
    // Unsigned sums, which wrap as MPI's do; the order of maxima is the signed one.
    return reduction == Reduction::Sum ? choose<Plain<uint32_t>>(reduction)
                                       : choose<Plain<int32_t>>(reduction);
  case DType::I64:
    return reduction == Reduction::Sum ? choose<Plain<uint64_t>>(reduction)
                                       : choose<Plain<int64_t>>(reduction);
  case DType::I1:
    return choose<Plain<uint8_t>>(reduction);
  }
  return nullptr;
}

} // namespace shoal::rt
