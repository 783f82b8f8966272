// A rank's own hand on the progress board, and the thread that ends the job when this rank has
// waited too long for others. NCCL's watchdog and its flight recorder are the known
// equivalents.
#ifndef SHOAL_RT_CORE_WATCHDOG_H
#define SHOAL_RT_CORE_WATCHDOG_H

#include "core/board.h"
#include "shoal-rt/program.h"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shoal::rt {

inline constexpr double kDefaultTimeout = 600; // seconds

// Something a rank can be at, made once and shown often.
struct Operation {
  BoardText text{};
  uint32_t row = kNone;     // of the program, or kNone
  uint32_t gate = kNone;    // where its ranks meet, or kNone: it waits for nobody
  std::vector<uint32_t> members; // MPI ranks that meet there; empty: all
};

// Only one thread at a time writes a place; the executor's lock sees to that.
class Beacon {
public:
  explicit Beacon(BoardEntry &entry);

  const BoardEntry &entry() const { return entry_; }
  void setState(RankState state);
  void setTimeout(double seconds);
  // Steps are counted over all programs of the run, so that a number is never used twice.
  void beginStep(uint64_t step, bool evaluates);

  // The calling thread is now at `operation`, which must outlive it or be forgotten.
  void at(const Operation &operation, Phase phase) { write(entry_.compute, operation, phase); }
  // The transfer that is being started, or is under way and will be waited for next.
  void transfer(const Operation &operation, Phase phase) {
    write(entry_.communication, operation, phase);
  }
  void noTransfer() { write(entry_.communication, idle_, Phase::Done); }
  void entered(const Operation &operation) {
    if (operation.gate < kBoardGates)
      entry_.entered[operation.gate].store(ordinal(operation), std::memory_order_release);
  }

  // Outside of steps: what this rank does alone, ...
  void alone(const std::string &what);
  // ... and, while a Together lives, what it enters together with all others, of whom it waits for `members`: MPI
  // ranks, none: all.
  class Together {
  public:
    Together(Beacon &beacon, const std::string &what, const std::vector<uint32_t> &members = {});
    ~Together();
    Together(const Together &) = delete;
    Together &operator=(const Together &) = delete;

  private:
    Beacon &beacon_;
  };
  // Operations made by somebody who is about to go.
  void forget();

  uint64_t ordinal(const Operation &operation) const {
    if (operation.gate == 0)
      return calls_;
    return tick_ << 24 | (uint64_t(operation.row) + 1);
  }
  // What the calling thread waits in, or null. Hold lock() while using it.
  const Operation *waiting() const;
  std::mutex &lock() { return mutex_; }

private:
  void write(BoardPlace &place, const Operation &operation, Phase phase);
  const Operation &known(const std::string &what, uint32_t gate, const std::vector<uint32_t> &members);

  BoardEntry &entry_;
  Operation idle_;
  std::atomic<uint64_t> tick_ = 0, calls_ = 0;
  std::atomic<const Operation *> current_ = nullptr, awaited_ = nullptr;
  std::map<std::string, Operation> known_;
  const Operation *alone_ = nullptr;
  std::mutex mutex_;
};

// The line of a rank that waited: what it waits in, and who is not there and where that one is.
// `cause` is whether the named rank does not itself wait for others.
struct HangLine {
  std::string text;
  bool cause = true;
};
HangLine hangLine(const Board &board, uint32_t rank, const Operation &operation, uint64_t ordinal,
                  double seconds);

class Watchdog {
public:
  // `end` is called on the watchdog's thread after its line was printed and must end the job.
  Watchdog(const Board &board, uint32_t rank, Beacon &beacon, double seconds,
           std::function<void()> end);
  ~Watchdog();
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

private:
  void watch();
  void fire(double waited);

  const Board &board_;
  uint32_t rank_;
  Beacon &beacon_;
  double seconds_;
  std::function<void()> end_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_WATCHDOG_H
