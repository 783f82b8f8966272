// Executes the rows of a step. Stream 0 runs on the calling thread; the other streams are
// advanced by one communication thread, so that transfers overlap computation. While the
// calling thread has nothing to do but wait, it advances the streams itself and the
// communication thread rests: two threads polling for one rank would only slow it.
#ifndef SHOAL_RT_CORE_EXECUTOR_H
#define SHOAL_RT_CORE_EXECUTOR_H

#include "core/program.h"
#include "core/step_observer.h"
#include "core/transport.h"
#include "host/library.h"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace shoal::rt {

class Executor {
public:
  // `crowded`: ranks share cores, so waiting threads give way at once instead of spinning. Where
  // it is it tells by `beacon`.
  Executor(const Program &program, uint32_t position, const shoal_rt_kernel *kernels, char *arena,
           Transport &transport, bool crowded, Beacon &beacon);
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  // Runs all rows once and returns when every stream has ended. `probe(result)` is called
  // at each probe, when the host may read that result.
  void step(const std::function<void(uint32_t)> &probe);

  StepObserver &observer() { return observer_; }

  // Tiles of scores that attention has computed at this position, over all steps (shoal-rt/attention_tiles.h).
  uint64_t attentionTiles() const;

private:
  // A row with everything that does not change from step to step resolved.
  struct Row {
    Opcode op;
    uint32_t index; // in the program
    bool runs;      // at this position; else it only signals
    uint32_t event; // signalled, or kNone
    uint32_t awaited = kNone;
    uint32_t result = kNone;
    shoal_rt_kernel kernel = nullptr;
    std::vector<void *> buffers;
    std::unique_ptr<LibraryCall> library;
    uint64_t bytes = 0;
    int64_t value = 0;
  };
  // A communication stream: its rows, and the one that is under way.
  struct Lane {
    std::vector<Row> rows;
    size_t next = 0;
    bool begun = false, running = false; // the next row; its transfer
  };
  // Gives way to others the longer nothing happens.
  class Backoff;

  Row resolve(uint32_t index, uint32_t position, const shoal_rt_kernel *kernels, char *arena);
  void startTransfer(const Row &row); // under mutex_
  bool testTransfer(const Row &row);  // under mutex_
  void runOperation(Row &row, const std::function<void(uint32_t)> &probe);
  void runComputeRow(Row &row, const std::function<void(uint32_t)> &probe);
  static void runLocalRow(Row &row);

  bool isDone(uint32_t event) const;
  void signal(uint32_t event);
  bool advance(); // under mutex_; whether anything moved
  bool advance(Lane &lane);
  bool startNext(Lane &lane);
  void finish(Lane &lane);
  void startReady();
  template <typename Condition> void driveUntil(Condition done);
  void wakeCommunication();
  void communicate();

  const Program &program_;
  Transport &transport_;
  bool crowded_;
  StepObserver observer_;
  Libraries libraries_;
  std::vector<Row> compute_;
  std::vector<Lane> lanes_;
  std::vector<bool> awaitedByLane_; // per event

  std::vector<std::atomic<uint64_t>> events_; // the last step that signalled it
  std::atomic<uint64_t> stepNumber_ = 0;
  std::mutex mutex_;                        // transport_ and lanes_
  std::atomic<uint32_t> lanesOpen_ = 0;     // lanes with rows left in this step
  std::atomic<bool> computeDrives_ = false; // the calling thread advances the lanes
  std::atomic<uint32_t> wake_ = 0;          // changes when the communication thread should look
  std::atomic<bool> stop_ = false, failed_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_EXECUTOR_H
