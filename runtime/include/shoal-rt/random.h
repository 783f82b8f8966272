// Random numbers as functions of (seed, name, global index): every plan, every rank and
// the compiler's interpreter draw the same value for the same element of a parameter.
// The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011), which curand and PyTorch use too.
#ifndef SHOAL_RT_RANDOM_H
#define SHOAL_RT_RANDOM_H

#include "shoal-rt/program.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace shoal::rt {

// Four random words for a 64-bit key and a 128-bit counter.
inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counterLow, uint64_t counterHigh) {
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  uint32_t c0 = uint32_t(counterLow), c1 = uint32_t(counterLow >> 32);
  uint32_t c2 = uint32_t(counterHigh), c3 = uint32_t(counterHigh >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(p1 >> 32) ^ c1 ^ k0;
    c1 = uint32_t(p1);
    c2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// The key of a named stream: FNV-1a of the name, mixed with the seed (splitmix64's
// finalizer), so that neither close seeds nor close names give related streams.
inline uint64_t streamKey(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (char c : name)
    hash = (hash ^ uint8_t(c)) * 0x100000001b3ull;
  uint64_t z = hash + (seed + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// 53 random bits as a double in [0, 1).
inline double unitInterval(uint32_t high, uint32_t low) {
  return double((uint64_t(high) << 32 | low) >> 11) * 0x1p-53;
}

// Whether dropout keeps element `index` (row-major in the whole tensor) in a step: with probability
// 1 - rate. No two of (index, id, step) share a counter.
inline bool dropoutKeeps(double rate, uint64_t key, uint32_t step, uint32_t id, uint64_t index) {
  return philox(key, index, uint64_t(step) << 32 | id)[0] >= uint32_t(rate * 0x1p32);
}

// Element `index` (row-major in the whole tensor) of a parameter of shape `dims`, before
// it is rounded to the parameter's type. A matrix is the last two dimensions: fan_in is
// the one before the last, fan_out the last; a vector has fan_in = fan_out = its size.
inline double initialValue(InitKind kind, double a, double b, std::span<const uint64_t> dims,
                           uint64_t key, uint64_t index) {
  if (kind == InitKind::None || kind == InitKind::Constant)
    return kind == InitKind::None ? 0.0 : a;
  std::array<uint32_t, 4> words = philox(key, index, 0);
  double u = unitInterval(words[0], words[1]);
  double fanOut = dims.empty() ? 1.0 : double(dims.back());
  double fanIn = dims.size() < 2 ? fanOut : double(dims[dims.size() - 2]);
  double bound = 0;
  switch (kind) {
  case InitKind::Uniform:
    return a + (b - a) * u;
  case InitKind::Normal: { // Box and Muller; 1 - v lies in (0, 1]
    double v = unitInterval(words[2], words[3]);
    return a + b * std::sqrt(-2.0 * std::log(1.0 - v)) * std::cos(6.283185307179586476925 * u);
  }
  case InitKind::KaimingUniform:
    bound = std::sqrt(6.0 / fanIn);
    break;
  case InitKind::XavierUniform:
    bound = std::sqrt(6.0 / (fanIn + fanOut));
    break;
  default:
    break;
  }
  return bound * (2.0 * u - 1.0);
}

} // namespace shoal::rt

#endif // SHOAL_RT_RANDOM_H
