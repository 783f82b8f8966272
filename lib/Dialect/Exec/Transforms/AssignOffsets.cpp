// Lifetimes of buffers by vector clocks, then offsets, then the bytes that the program will report.
#include "Arena.h"
#include "Layout.h"

#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::exec {

namespace {
using Lifetimes = llvm::MapVector<BufferOp, ArenaBuffer>;
} // namespace

/// When each buffer is used first and last, in the clocks of the streams.
static Lifetimes findLifetimes(Block &block) {
  unsigned numStreams = 1;
  for (auto row : block.getOps<RowOpInterface>())
    numStreams = std::max<unsigned>(numStreams, row.getStreamIndex() + 1);
  using Clock = SmallVector<unsigned, 2>;
  SmallVector<Clock> now(numStreams, Clock(numStreams, 0));
  DenseMap<Value, Clock> signalled; // token -> what its row's end implies
  Lifetimes lifetimes;
  for (auto buffer : block.getOps<BufferOp>()) {
    ArenaBuffer &lifetime = lifetimes[buffer];
    lifetime.bytes = buffer.getResult().getType().getNumBytes();
    lifetime.last.assign(numStreams, 0);
    lifetime.known.assign(numStreams, ~0u);
  }
  unsigned number = 0;
  for (Operation &op : block) {
    if (auto wait = dyn_cast<WaitOp>(op)) {
      for (auto [mine, theirs] : llvm::zip_equal(now[wait.getStream()], signalled[wait.getToken()]))
        mine = std::max(mine, theirs);
      continue;
    }
    auto row = dyn_cast<RowOpInterface>(op);
    if (!row)
      continue;
    Clock &clock = now[row.getStreamIndex()];
    SmallVector<Value> buffers;
    row.getReads(buffers);
    row.getWrites(buffers);
    for (Value value : buffers) {
      auto buffer = dyn_cast<BufferOp>(getByteRange(value).storage);
      if (!buffer)
        continue;
      ArenaBuffer &lifetime = lifetimes[buffer];
      lifetime.birth = std::min(lifetime.birth, number);
      for (unsigned s = 0; s < numStreams; ++s)
        lifetime.known[s] = std::min(lifetime.known[s], clock[s]);
      lifetime.last[row.getStreamIndex()] = clock[row.getStreamIndex()] + 1;
    }
    ++number;
    ++clock[row.getStreamIndex()];
    if (Value token = row.getSignal())
      signalled[token] = clock;
  }
  return lifetimes;
}

/// Arguments first, in each memory by itself.
static void place(ProgramOp program, Memory memory, const Lifetimes &lifetimes) {
  int64_t base = 0;
  for (auto argument : program.getBody().front().getOps<ArgOp>())
    if (getMemory(argument.getResult()) == memory) {
      argument.setOffset(base);
      base += llvm::alignTo(argument.getResult().getType().getNumBytes(), kBufferAlignment);
    }
  SmallVector<BufferOp> placed;
  SmallVector<ArenaBuffer> buffers;
  for (auto &[op, lifetime] : lifetimes)
    if (BufferOp buffer = op; getMemory(buffer.getResult()) == memory) {
      placed.push_back(buffer);
      buffers.push_back(lifetime);
    }
  int64_t end = assignArena(buffers, base, kBufferAlignment);
  for (auto [buffer, lifetime] : llvm::zip_equal(placed, buffers))
    buffer.setOffset(lifetime.offset);
  setArenaBytes(program, memory, end);
}

void assignOffsets(ProgramOp program) {
  Lifetimes lifetimes = findLifetimes(program.getBody().front());
  for (Memory memory : {Memory::device, Memory::host})
    place(program, memory, lifetimes);

  ArenaUse most; // of each class by itself
  for (const ArenaUse &use : measureArena(program))
    for (auto [bytes, now] : llvm::zip_equal(most.bytes, use.bytes))
      bytes = std::max(bytes, now);
  program.setBytesAttr(BytesAttr::get(
      program.getContext(), most.get(StorageClass::param), most.get(StorageClass::grad),
      most.get(StorageClass::optimizer),
      most.get(StorageClass::activation) + most.get(StorageClass::input),
      most.get(StorageClass::workspace)));
}

} // namespace shoal::exec
