// Temperature, top-k and the inverse of the cumulative distribution.
#include "core/sampling.h"
#include "core/error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace shoal::rt {

uint64_t drawToken(std::span<const double> logits, const SamplingRule &rule, double u) {
  for (size_t i = 0; i < logits.size(); ++i)
    if (std::isnan(logits[i]) || logits[i] == HUGE_VAL)
      workFailed("no token can be drawn: the logit of token ", i, " is ", std::isnan(logits[i]) ? "nan" : "infinite");
  size_t best = size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (std::isinf(logits[best]))
    workFailed("no token can be drawn: all ", logits.size(), " logits are -inf");
  if (rule.temperature == 0)
    return best;

  std::vector<size_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), size_t(0));
  if (rule.topK != 0 && rule.topK < tokens.size()) {
    auto isBefore = [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
    std::nth_element(tokens.begin(), tokens.begin() + ptrdiff_t(rule.topK), tokens.end(), isBefore);
    tokens.resize(rule.topK);
    std::sort(tokens.begin(), tokens.end());
  }
  // Up to each token; the largest logit has weight 1, so nothing overflows.
  std::vector<double> sums;
  double sum = 0;
  for (size_t token : tokens)
    sums.push_back(sum += std::exp((logits[token] - logits[best]) / rule.temperature));
  auto drawn = std::upper_bound(sums.begin(), sums.end(), u * sum);
  // u * sum may be rounded up to the sum; the last token of any weight ends it.
  if (drawn == sums.end())
    drawn = std::lower_bound(sums.begin(), sums.end(), sum);
  return tokens[size_t(drawn - sums.begin())];
}

} // namespace shoal::rt
