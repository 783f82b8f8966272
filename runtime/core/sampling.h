// The choice of a token from its logits.
#ifndef SHOAL_RT_CORE_SAMPLING_H
#define SHOAL_RT_CORE_SAMPLING_H

#include <cstdint>
#include <span>

namespace shoal::rt {

struct SamplingRule {
  double temperature = 1; // divides the logits; 0: always the largest, of equal ones the first
  uint64_t topK = 0;      // only so many of the largest, of equal ones the first; 0: all
};

// The token that a number `u` of [0, 1) falls on: the first one at which the sum of exp(logit / temperature)
// of the tokens up to it, in the order of their ids, exceeds u times the sum of all. Throws exit 1 where the logits
// are no such numbers.
uint64_t drawToken(std::span<const double> logits, const SamplingRule &rule, double u);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_SAMPLING_H
