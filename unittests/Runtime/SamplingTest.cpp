// Which token a number falls on: temperature, top-k, ties, and logits that no token can be drawn from.
#include "core/error.h"
#include "core/sampling.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBelowOne = 1 - 0x1p-53;

using Logits = std::vector<double>;

// Tokens as shares of [0, 1), by drawing with many equally spaced numbers.
std::vector<double> shares(const Logits &logits, const SamplingRule &rule) {
  constexpr int draws = 100000;
  std::vector<double> counts(logits.size());
  for (int i = 0; i < draws; ++i)
    counts[drawToken(logits, rule, (i + 0.5) / draws)] += 1.0 / draws;
  return counts;
}

TEST(Sampling, SharesAreTheSoftmax) {
  Logits logits = {0.5, -1, 2, 0.5};
  for (double temperature : {0.5, 1.0, 3.0}) {
    double sum = 0;
    for (double logit : logits)
      sum += std::exp(logit / temperature);
    std::vector<double> got = shares(logits, {.temperature = temperature});
    for (size_t i = 0; i < logits.size(); ++i)
      EXPECT_NEAR(got[i], std::exp(logits[i] / temperature) / sum, 2e-5) << temperature << " " << i;
  }
}

TEST(Sampling, TokensFollowEachOtherByTheirIds) {
  Logits logits = {0, 0, 0, 0};
  EXPECT_EQ(drawToken(logits, {}, 0), 0u);
  EXPECT_EQ(drawToken(logits, {}, 0.25), 1u); // a number on a border belongs to the next token
  EXPECT_EQ(drawToken(logits, {}, 0.6), 2u);
  EXPECT_EQ(drawToken(logits, {}, kBelowOne), 3u);
}

TEST(Sampling, TemperatureZeroTakesTheFirstOfTheLargest) {
  for (double u : {0.0, 0.5, kBelowOne}) {
    EXPECT_EQ(drawToken(Logits{1, 3, 3, 2}, {.temperature = 0}, u), 1u);
    EXPECT_EQ(drawToken(Logits{-kInfinity, -5}, {.temperature = 0}, u), 1u);
  }
}

TEST(Sampling, TopKKeepsTheLargestAndOfEqualOnesTheFirst) {
  Logits logits = {1, 3, 2, 3, 2};
  std::vector<double> got = shares(logits, {.topK = 3});
  double e3 = std::exp(3), e2 = std::exp(2), sum = 2 * e3 + e2;
  std::array<double, 5> expected = {0, e3 / sum, e2 / sum, e3 / sum, 0};
  for (size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 2e-5) << i;
  EXPECT_EQ(shares(logits, {.topK = 1})[1], shares(logits, {.temperature = 0})[1]);
  EXPECT_EQ(shares(logits, {.topK = 5}), shares(logits, {}));
}

TEST(Sampling, LargeAndSmallLogitsDoNotOverflow) {
  EXPECT_EQ(drawToken(Logits{1e308, -1e308}, {.temperature = 1e-3}, kBelowOne), 0u);
  EXPECT_EQ(drawToken(Logits{-1e308, 1e308, -kInfinity}, {.temperature = 1000}, 0.5), 1u);
  // The last token with any weight, where the sum is rounded.
  EXPECT_EQ(drawToken(Logits{0, 0, -kInfinity}, {}, kBelowOne), 1u);
}

TEST(Sampling, LogitsThatNothingCanBeDrawnFrom) {
  auto refused = [](const Logits &logits, const std::string &line) {
    for (double temperature : {0.0, 1.0}) {
      try {
        drawToken(logits, {.temperature = temperature}, 0.5);
        ADD_FAILURE() << "expected: " << line;
      } catch (const Error &error) {
        EXPECT_EQ(error.code, kExitWorkFailed);
        EXPECT_EQ(error.what(), line);
      }
    }
  };
  refused({0, std::nan(""), 1}, "no token can be drawn: the logit of token 1 is nan");
  refused({0, kInfinity}, "no token can be drawn: the logit of token 1 is infinite");
  refused({-kInfinity, -kInfinity}, "no token can be drawn: all 2 logits are -inf");
}

} // namespace
} // namespace shoal::rt
