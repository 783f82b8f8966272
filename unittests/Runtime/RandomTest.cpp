// The generator must be Philox4x32-10 bit for bit, and initial values what their names say.
#include "core/dataset.h"
#include "shoal-rt/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsDependOnSeedAndName) {
  std::set<uint64_t> keys;
  for (uint64_t seed : {0ull, 1ull, 2ull, ~0ull})
    for (const char *name : {"", "w", "w1", "w2", "b1"})
      keys.insert(streamKey(seed, name));
  EXPECT_EQ(keys.size(), 20u);
}

// The share that is kept, and that masks of two steps, ids, seeds, or of neighbours, agree as often as independent
// draws do: within five standard deviations.
TEST(Random, DropoutKeepsItsShareIndependently) {
  constexpr uint64_t count = 100'000;
  for (double rate : {0.0, 0.1, 0.5, 0.999}) {
    struct Draw {
      uint64_t key;
      uint32_t step, id;
      uint64_t shift;
    };
    const uint64_t key = streamKey(3, "seed");
    const Draw draws[] = {{key, 0, 0, 0}, {key, 1, 0, 0}, {key, 0, 1, 0}, {key, 1, 1, 0},
                          {streamKey(4, "seed"), 0, 0, 0}, {key, 0, 0, 1}};
    auto kept = [&](const Draw &draw, uint64_t i) {
      return dropoutKeeps(rate, draw.key, draw.step, draw.id, draw.shift + i);
    };
    auto expectShare = [&](uint64_t found, double p) {
      EXPECT_NEAR(double(found) / count, p, 5 * std::sqrt(p * (1 - p) / count)) << rate;
    };
    for (const Draw &draw : draws) {
      uint64_t alone = 0, both = 0;
      for (uint64_t i = 0; i < count; ++i) {
        alone += kept(draw, i);
        both += kept(draw, i) && kept(draws[0], i);
      }
      expectShare(alone, 1 - rate);
      if (&draw != draws)
        expectShare(both, (1 - rate) * (1 - rate));
    }
  }
}

struct Moments {
  double mean = 0, deviation = 0, least = 1e300, most = -1e300;
};

Moments momentsOf(InitKind kind, double a, double b, std::vector<uint64_t> dims) {
  constexpr uint64_t count = 200'000;
  Moments m;
  double squares = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double value = initialValue(kind, a, b, dims, streamKey(7, "w"), i);
    m.mean += value / count;
    squares += value * value / count;
    m.least = std::min(m.least, value);
    m.most = std::max(m.most, value);
  }
  m.deviation = std::sqrt(squares - m.mean * m.mean);
  return m;
}

TEST(Random, NormalHasItsMoments) {
  Moments m = momentsOf(InitKind::Normal, 3.0, 0.5, {200'000});
  EXPECT_NEAR(m.mean, 3.0, 0.005);
  EXPECT_NEAR(m.deviation, 0.5, 0.005);
  EXPECT_LT(m.most, 3.0 + 0.5 * 9);
}

TEST(Random, UniformStaysInside) {
  Moments m = momentsOf(InitKind::Uniform, -2.0, 6.0, {200'000});
  EXPECT_NEAR(m.mean, 2.0, 0.02);
  EXPECT_GE(m.least, -2.0);
  EXPECT_LT(m.most, 6.0);
}

TEST(Random, FansAreTheLastTwoDimensions) {
  Moments kaiming = momentsOf(InitKind::KaimingUniform, 0, 0, {24, 1000});
  EXPECT_NEAR(kaiming.most, 0.5, 1e-3); // sqrt(6 / 24)
  EXPECT_NEAR(kaiming.least, -0.5, 1e-3);
  Moments xavier = momentsOf(InitKind::XavierUniform, 0, 0, {3, 20, 4});
  EXPECT_NEAR(xavier.most, 0.5, 1e-3); // sqrt(6 / (20 + 4))
  EXPECT_EQ(momentsOf(InitKind::Constant, 4.5, 0, {}).most, 4.5);
}

TEST(Random, EpochOrdersArePermutationsThatDiffer) {
  std::vector<uint64_t> first = epochOrder(1, 0, 1000), sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (uint64_t i = 0; i < sorted.size(); ++i)
    ASSERT_EQ(sorted[i], i);
  EXPECT_EQ(first, epochOrder(1, 0, 1000));
  EXPECT_NE(first, epochOrder(1, 1, 1000));
  EXPECT_NE(first, epochOrder(2, 0, 1000));
  EXPECT_TRUE(epochOrder(1, 0, 0).empty());
  // Each row comes first about equally often.
  std::array<int, 4> firsts{};
  for (uint64_t epoch = 0; epoch < 4000; ++epoch)
    ++firsts[epochOrder(3, epoch, 4)[0]];
  for (int count : firsts)
    EXPECT_NEAR(count, 1000, 150);
}

} // namespace
} // namespace shoal::rt
