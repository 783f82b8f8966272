// The executor: rows in program order per stream, events between streams.
#include "core/executor.h"
#include "core/error.h"
#include "shoal-rt/traffic.h"

#include <chrono>
#include <cstring>
#include <sched.h>
#include <sys/prctl.h>

namespace shoal::rt {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// A test of a transfer that takes this long has moved data, so the next one may, too.
constexpr auto kBusyTest = microseconds(3);

} // namespace

// Spins, then yields, then sleeps. Sleeping early is right on shared cores: a thread that
// yields goes behind everything else that wants the core, one that wakes goes before it.
class Executor::Backoff {
  // Lets the core's other thread have its units while this one polls.
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

public:
  Backoff(uint32_t spins, microseconds yielding) : spins_(spins), yielding_(yielding) {}
  void reset() { idle_ = 0; }
  void pause() {
    if (idle_++ < spins_) {
      relax();
      return;
    }
    Clock::time_point now = Clock::now();
    if (idle_ == spins_ + 1)
      begin_ = now;
    if (now - begin_ < yielding_)
      sched_yield();
    else
      std::this_thread::sleep_for(microseconds(now - begin_ < microseconds(1000) ? 10 : 50));
  }

private:
  uint32_t spins_, idle_ = 0;
  microseconds yielding_;
  Clock::time_point begin_;
};

Executor::Executor(const Program &program, uint32_t position, const shoal_rt_kernel *kernels,
                   char *arena, Transport &transport, bool crowded, Beacon &beacon)
    : program_(program), transport_(transport), crowded_(crowded),
      observer_(program, position, beacon), lanes_(program.header().numStreams - 1),
      awaitedByLane_(program.header().numEvents, false), events_(program.header().numEvents) {
  for (uint32_t index : program.rowsAt(position)) {
    uint32_t stream = program.instrs()[index].stream;
    Row row = resolve(index, position, kernels, arena);
    if (stream != 0 && row.awaited != kNone)
      awaitedByLane_[row.awaited] = true;
    (stream == 0 ? compute_ : lanes_[stream - 1].rows).push_back(std::move(row));
  }
  for (Lane &lane : lanes_)
    lane.next = lane.rows.size();
  bool hasLanes = false;
  for (const Lane &lane : lanes_)
    hasLanes |= !lane.rows.empty();
  prctl(PR_SET_TIMERSLACK, 1); // sleep as briefly as asked; the thread below inherits it
  if (hasLanes)
    thread_ = std::thread([this] { communicate(); });
}

Executor::~Executor() {
  stop_ = true;
  wakeCommunication();
  if (thread_.joinable())
    thread_.join();
}

Executor::Row Executor::resolve(uint32_t index, uint32_t position, const shoal_rt_kernel *kernels,
                                char *arena) {
  const Instr &instr = program_.instrs()[index];
  Row row{};
  row.op = instr.op;
  row.index = index;
  row.event = instr.event;
  row.awaited = row.result = kNone;
  row.runs = program_.runsAt(instr, position);
  if (!row.runs)
    return row;
  for (uint32_t view : program_.operands(instr))
    row.buffers.push_back(arena + program_.views()[view].offset);
  std::span<const int64_t> params = program_.params(instr);
  switch (instr.op) {
  case Opcode::Launch:
    row.kernel = kernels[instr.a];
    if (!row.kernel)
      badInput("program: row ", index, " launches kernel ", instr.a, ", which has no code");
    break;
  case Opcode::Library:
    row.library = libraries_.bind(LibraryFunction(instr.a), params, row.buffers);
    break;
  case Opcode::Copy: {
    const View &view = program_.views()[program_.operands(instr)[0]];
    row.bytes = view.elements * elementBytes(view.dtype);
    break;
  }
  case Opcode::AxisIndex:
    row.value = params[0] *
                int64_t(program_.linear(position, program_.axesOf(program_.groups()[instr.a])));
    break;
  case Opcode::Wait:
    row.awaited = uint32_t(params[0]);
    break;
  case Opcode::Probe:
    row.result = instr.a;
    break;
  default:
    break;
  }
  return row;
}

bool Executor::isDone(uint32_t event) const {
  return events_[event].load(std::memory_order_acquire) ==
         stepNumber_.load(std::memory_order_relaxed);
}

void Executor::signal(uint32_t event) {
  if (event != kNone)
    events_[event].store(stepNumber_.load(std::memory_order_relaxed), std::memory_order_release);
}

void Executor::wakeCommunication() {
  wake_.fetch_add(1);
  wake_.notify_one();
}

void Executor::runLocalRow(Row &row) {
  if (row.op == Opcode::Copy)
    std::memcpy(row.buffers[1], row.buffers[0], row.bytes);
}

void Executor::startTransfer(const Row &row) {
  observer_.entering(row.index);
  transport_.start(row.index);
  observer_.entered(row.index);
}

bool Executor::testTransfer(const Row &row) {
  if (!transport_.test(row.index))
    return false;
  observer_.left(row.index);
  return true;
}

// The row that is next in the lane is over.
void Executor::finish(Lane &lane) {
  Row &row = lane.rows[lane.next];
  if (row.runs)
    observer_.laneEnd(row.index);
  signal(row.event);
  lane.begun = lane.running = false;
  if (++lane.next == lane.rows.size())
    lanesOpen_.fetch_sub(1);
}

// Runs a lane up to its next transfer and starts that; whether anything moved.
bool Executor::startNext(Lane &lane) {
  bool moved = false;
  while (!lane.running && lane.next < lane.rows.size()) {
    Row &row = lane.rows[lane.next];
    if (!lane.begun) {
      lane.begun = true;
      if (row.runs)
        observer_.laneBegin(row.index);
    }
    if (row.runs && row.op == Opcode::Wait && !isDone(row.awaited))
      break;
    moved = true;
    if (row.runs && isCommunication(row.op)) {
      startTransfer(row);
      lane.running = true;
      break;
    }
    if (row.runs)
      runLocalRow(row);
    finish(lane);
  }
  return moved;
}

bool Executor::advance(Lane &lane) {
  bool moved = false;
  while (true) {
    moved |= startNext(lane);
    if (!lane.running)
      return moved;
    Clock::time_point begin = Clock::now();
    if (!testTransfer(lane.rows[lane.next]))
      return moved || Clock::now() - begin > kBusyTest;
    finish(lane);
    moved = true;
  }
}

bool Executor::advance() {
  bool moved = false;
  for (Lane &lane : lanes_)
    moved |= advance(lane);
  return moved;
}

template <typename Condition> void Executor::driveUntil(Condition done) {
  computeDrives_ = true;
  Backoff backoff(crowded_ ? 4 : 2000, microseconds(crowded_ ? 50 : 1000));
  while (true) {
    bool moved, ready;
    {
      std::lock_guard lock(mutex_);
      if (failed_)
        std::rethrow_exception(failure_);
      moved = advance();
      Clock::time_point begin = Clock::now();
      ready = done();
      moved |= Clock::now() - begin > kBusyTest;
    }
    if (ready)
      break;
    if (moved)
      backoff.reset();
    else
      backoff.pause();
  }
  computeDrives_ = false;
  if (lanesOpen_ != 0)
    wakeCommunication();
}

void Executor::runOperation(Row &row, const std::function<void(uint32_t)> &probe) {
  observer_.begin(row.index);
  switch (row.op) {
  case Opcode::Launch:
    row.kernel(row.buffers.data());
    break;
  case Opcode::Library:
    row.library->run();
    break;
  case Opcode::AxisIndex:
    std::memcpy(row.buffers[0], &row.value, sizeof row.value);
    break;
  case Opcode::Wait:
    driveUntil([&] { return isDone(row.awaited); });
    break;
  case Opcode::Probe:
    probe(row.result);
    break;
  case Opcode::Copy:
    runLocalRow(row);
    break;
  default: { // communication on the compute stream: start it and drive everything
    {
      std::lock_guard lock(mutex_);
      startTransfer(row);
    }
    observer_.waits(row.index);
    driveUntil([&] { return testTransfer(row); });
  }
  }
  observer_.end(row.index);
}

void Executor::runComputeRow(Row &row, const std::function<void(uint32_t)> &probe) {
  if (row.runs)
    runOperation(row, probe);
  if (row.event == kNone)
    return;
  signal(row.event);
  if (!awaitedByLane_[row.event])
    return;
  startReady();
  wakeCommunication();
}

// While a transfer of another lane is under way the communication thread looks only now and then, and a message that is
// ready now should not wait for that. Where it is looking it finds what is ready by itself.
void Executor::startReady() {
  if (lanes_.size() < 2)
    return;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && !failed_)
    for (Lane &lane : lanes_)
      startNext(lane);
}

void Executor::step(const std::function<void(uint32_t)> &probe) {
  bool startable = false;
  {
    std::lock_guard lock(mutex_);
    stepNumber_.fetch_add(1);
    for (Lane &lane : lanes_) {
      lane.next = 0;
      if (lane.rows.empty())
        continue;
      lanesOpen_.fetch_add(1);
      startable |= lane.rows[0].op != Opcode::Wait;
    }
  }
  if (startable)
    wakeCommunication();
  for (Row &row : compute_)
    runComputeRow(row, probe);
  observer_.beginEnd();
  driveUntil([&] { return lanesOpen_ == 0; });
  observer_.endStep();
}

// Library calls are rows of stream 0.
uint64_t Executor::attentionTiles() const {
  uint64_t tiles = 0;
  for (const Row &row : compute_)
    tiles += row.library ? row.library->attentionTiles() : 0;
  return tiles;
}

// The communication thread: advances lanes while there is something to advance, polls
// while transfers are under way, and sleeps otherwise.
void Executor::communicate() {
  // On a core of its own it may poll; on a shared one each poll delays a kernel.
  Backoff backoff(crowded_ ? 0 : 2000, microseconds(crowded_ ? 10 : 1000));
  while (!stop_) {
    uint32_t seen = wake_.load();
    if (stop_)
      return;
    if (lanesOpen_ == 0 || computeDrives_ || failed_) {
      wake_.wait(seen);
      backoff.reset();
      continue;
    }
    bool moved = false, running = false;
    {
      std::lock_guard lock(mutex_);
      try {
        moved = advance();
      } catch (...) {
        failure_ = std::current_exception();
        failed_ = true;
        continue;
      }
      for (const Lane &lane : lanes_)
        running |= lane.running;
    }
    if (moved)
      backoff.reset();
    else if (running)
      backoff.pause();
    else
      wake_.wait(seen);
  }
}

} // namespace shoal::rt
