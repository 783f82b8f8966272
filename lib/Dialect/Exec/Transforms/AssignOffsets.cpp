// Lifetimes of buffers by vector clocks, then offsets, then the bytes that the program will report.
#include "Arena.h"
#include "Layout.h"

#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::exec {

namespace {

/// When buffers are in use, by class of positions.
class Lifetimes {
public:
  Lifetimes(ProgramOp program, const PositionClasses &classes) : classes(classes) {
    for (auto row : program.getBody().getOps<RowOpInterface>()) {
      numStreams = std::max<unsigned>(numStreams, row.getStreamIndex() + 1);
      unsigned number = numbers.size();
      numbers[row] = number;
    }
    for (auto buffer : program.getBody().getOps<BufferOp>()) {
      ArenaBuffer &lifetime = lifetimes[buffer];
      lifetime.bytes = buffer.getResult().getType().getNumBytes();
      lifetime.classes = llvm::SmallBitVector(classes.size());
    }
    for (unsigned number = 0; number < classes.size(); ++number)
      follow(number);
    // What no row touches takes room at one of the classes.
    for (auto &[buffer, lifetime] : lifetimes)
      if (lifetime.classes.none()) {
        lifetime.classes.set(0);
        lifetime.last.assign(numStreams, 0);
        lifetime.known.assign(numStreams, ~0u);
      }
  }

  llvm::MapVector<BufferOp, ArenaBuffer> &get() { return lifetimes; }

private:
  using Clock = SmallVector<unsigned, 2>; // rows known to have ended, per stream
  /// Of a class of positions: per stream, before its next row, and of each token, what its row's end implies.
  struct Clocks {
    SmallVector<Clock> now;
    llvm::DenseMap<Value, Clock> signalled;
    void wait(WaitOp op);
  };
  void follow(unsigned number);
  void use(BufferOp buffer, RowOpInterface row, unsigned number, const Clock &clock);

  const PositionClasses &classes;
  unsigned numStreams = 1;
  llvm::DenseMap<Operation *, unsigned> numbers; // of rows
  llvm::MapVector<BufferOp, ArenaBuffer> lifetimes;
};

} // namespace

/// Of a row that runs elsewhere nothing is known.
void Lifetimes::Clocks::wait(WaitOp op) {
  auto theirs = signalled.find(op.getToken());
  if (theirs == signalled.end())
    return;
  for (auto [mine, other] : llvm::zip_equal(now[op.getStream()], theirs->second))
    mine = std::max(mine, other);
}

/// A row of class `number` touches a buffer while its stream knows `clock`.
void Lifetimes::use(BufferOp buffer, RowOpInterface row, unsigned number, const Clock &clock) {
  ArenaBuffer &lifetime = lifetimes[buffer];
  lifetime.birth = std::min(lifetime.birth, numbers.lookup(row));
  if (!lifetime.classes.test(number)) {
    lifetime.classes.set(number);
    lifetime.last.append(numStreams, 0);
    lifetime.known.append(numStreams, ~0u);
  }
  auto last = MutableArrayRef(lifetime.last).take_back(numStreams);
  auto known = MutableArrayRef(lifetime.known).take_back(numStreams);
  for (auto [mine, ended] : llvm::zip_equal(known, clock))
    mine = std::min(mine, ended);
  unsigned stream = row.getStreamIndex();
  last[stream] = clock[stream] + 1;
}

void Lifetimes::follow(unsigned number) {
  Clocks clocks;
  clocks.now.assign(numStreams, Clock(numStreams, 0));
  for (Operation *op : classes[number].steps) {
    if (auto wait = dyn_cast<WaitOp>(op)) {
      clocks.wait(wait);
      continue;
    }
    auto row = cast<RowOpInterface>(op);
    Clock &clock = clocks.now[row.getStreamIndex()];
    SmallVector<Value> buffers;
    getAccesses(row, classes[number].positions.front(), buffers, buffers);
    for (Value value : buffers)
      if (auto buffer = dyn_cast<BufferOp>(getByteRange(value).storage))
        use(buffer, row, number, clock);
    ++clock[row.getStreamIndex()];
    if (Value token = row.getSignal())
      clocks.signalled[token] = clock;
  }
}

/// Arguments lie first. Those of many positions come before those of few, so that each position's lie close together.
/// Returns per class where its arguments end.
static SmallVector<int64_t> placeArguments(ProgramOp program, const PositionClasses &classes, Memory memory) {
  SmallVector<ArgOp> order;
  for (auto argument : program.getBody().getOps<ArgOp>())
    if (getMemory(argument.getResult()) == memory)
      order.push_back(argument);
  llvm::stable_sort(order, [&](ArgOp a, ArgOp b) { return classes.of(a).size() > classes.of(b).size(); });
  SmallVector<int64_t> ends(classes.size(), 0);
  for (ArgOp argument : order) {
    int64_t begin = 0;
    for (unsigned number : classes.of(argument))
      begin = std::max(begin, ends[number]);
    argument.setOffset(begin);
    for (unsigned number : classes.of(argument))
      ends[number] = begin + llvm::alignTo(argument.getResult().getType().getNumBytes(), kBufferAlignment);
  }
  return ends;
}

/// Buffers of one memory behind its arguments.
static void placeBuffers(ProgramOp program, const PositionClasses &classes, Lifetimes &lifetimes, Memory memory) {
  SmallVector<BufferOp> placed;
  SmallVector<ArenaBuffer> buffers;
  for (auto &[op, lifetime] : lifetimes.get())
    if (BufferOp buffer = op; getMemory(buffer.getResult()) == memory) {
      placed.push_back(buffer);
      buffers.push_back(lifetime);
    }
  int64_t end = assignArena(buffers, placeArguments(program, classes, memory), kBufferAlignment);
  for (auto [buffer, lifetime] : llvm::zip_equal(placed, buffers))
    buffer.setOffset(lifetime.offset);
  setArenaBytes(program, memory, end);
}

void assignOffsets(ProgramOp program) {
  PositionClasses classes(program);
  Lifetimes lifetimes(program, classes);
  for (Memory memory : {Memory::device, Memory::host})
    placeBuffers(program, classes, lifetimes, memory);
  // Of the rank that needs most.
  std::optional<ArenaUse> most;
  for (const PositionClass &at : classes.get())
    if (ArenaUse use = measureMost(at); !most || use.end > most->end)
      most = use;
  program.setBytesAttr(getBytes(program.getContext(), *most));
}

} // namespace shoal::exec
