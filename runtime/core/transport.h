// What the executor knows of communication: a row is started, and tested until it has
// ended. Whether messages, memory or a library carry it is the implementation's affair.
#ifndef SHOAL_RT_CORE_TRANSPORT_H
#define SHOAL_RT_CORE_TRANSPORT_H

#include "shoal-rt/report.h"

#include <cstdint>

namespace shoal::rt {

// Not thread-safe: the executor serializes its calls.
class Transport {
public:
  virtual ~Transport() = default;

  // Starts a communication row, which is not under way, without waiting for anybody; it
  // has ended once test() was true. Throw exit 1 with the row's name.
  virtual void start(uint32_t row) = 0;
  virtual bool test(uint32_t row) = 0;

  // This rank's traffic per step, and what carried it (`measured.transport`). Throws exit 1
  // when counts are no multiple of `steps`.
  virtual void report(uint64_t steps, RankReport &to) const = 0;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_TRANSPORT_H
