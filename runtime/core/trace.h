// When each row of some steps began and ended, for `--trace` and `--timeline`: kept in memory of a size known
// before the first step. Of the first steps it is written as a Chrome trace (chrome://tracing, Perfetto).
#ifndef SHOAL_RT_CORE_TRACE_H
#define SHOAL_RT_CORE_TRACE_H

#include "core/program.h"

#include <chrono>
#include <string>
#include <vector>

namespace shoal::rt {

// Events that are no row.
inline constexpr uint32_t kTraceEnd = kNone;       // waiting for the end of the step
inline constexpr uint32_t kTraceDelay = kNone - 1; // --inject-delay

inline int64_t nowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Trace {
public:
  struct Event {
    uint32_t row;
    uint64_t step;
    int64_t begin, end; // nanoseconds
  };

  // Room for `steps` steps of a position. Each stream is written by one thread at a time.
  Trace(const Program &program, uint32_t position, uint64_t steps);

  void beginStep(uint64_t step) { step_ = step; } // from 1
  void add(uint32_t stream, uint32_t row, int64_t begin, int64_t end) {
    streams_[stream].push_back({row, step_, begin, end});
  }

  // Per stream, in order.
  const std::vector<std::vector<Event>> &events() const { return streams_; }

  // The events of this rank up to a step as elements of a JSON array. `zero` is what this rank's clock reads
  // at the time that all ranks call 0.
  std::string text(uint32_t rank, int64_t zero, uint64_t lastStep) const;

private:
  const Program &program_;
  uint64_t step_ = 0;
  std::vector<std::vector<Event>> streams_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_TRACE_H
