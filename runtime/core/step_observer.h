// What can be seen of a step while it runs: the executor says here when a row begins and ends,
// and the progress board, the trace and the waiting time are made of that. Without a trace a row
// costs a write to the board.
#ifndef SHOAL_RT_CORE_STEP_OBSERVER_H
#define SHOAL_RT_CORE_STEP_OBSERVER_H

#include "core/program.h"
#include "core/trace.h"
#include "core/watchdog.h"

#include <vector>

namespace shoal::rt {

class StepObserver {
public:
  StepObserver(const Program &program, uint32_t position, Beacon &beacon);
  ~StepObserver();
  StepObserver(const StepObserver &) = delete;
  StepObserver &operator=(const StepObserver &) = delete;

  // Gets the events of the steps from now on; null: none. It must outlive them.
  void setTrace(Trace *trace) { trace_ = trace; }

  // The calling thread slept since `began`, before the step.
  void delayed(int64_t began) {
    if (trace_)
      trace_->add(0, kTraceDelay, began, nowNanoseconds());
  }

  // The calling thread: rows of stream 0 and the end of a step, in order. `waits` follows `begin`
  // for a row that has entered a transfer and waits for it.
  void begin(uint32_t row);
  void waits(uint32_t row);
  void end(uint32_t row);
  void beginEnd();
  void endStep();

  // Other streams, under the executor's lock.
  void laneBegin(uint32_t row);
  void laneEnd(uint32_t row);
  // Transfers of any stream, under that lock.
  void entering(uint32_t row);
  void entered(uint32_t row);
  void left(uint32_t row);

  // Time in which the calling thread waited for transfers or the end of a step, over all steps.
  double waitingSeconds() const { return double(waitedNanoseconds_) * 1e-9; }

private:
  void nameOperations(uint32_t position);
  const Operation &operationOf(uint32_t row) const { return operations_[slots_[row]]; }
  bool isWaiting(uint32_t row) const;
  void showTransfer();

  const Program &program_;
  Beacon &beacon_;
  Trace *trace_ = nullptr;
  std::vector<uint32_t> slots_;       // per row, into the next two; kNone: the position has nothing to do with it
  std::vector<Operation> operations_;
  std::vector<uint32_t> shown_; // the row itself, or for a wait what it waits for
  Operation between_, end_;
  std::vector<uint32_t> underWay_; // transfers
  int64_t rowBegan_ = 0, waitedNanoseconds_ = 0;
  std::vector<int64_t> laneBegan_; // per stream
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_STEP_OBSERVER_H
