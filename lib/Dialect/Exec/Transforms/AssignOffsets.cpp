// Lifetimes of buffers by vector clocks, then offsets, then the bytes that the program will report.
#include "Arena.h"
#include "Layout.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::exec {

namespace {
struct Lifetime {
  ArenaBuffer arena;
  int64_t first = -1, last = -1; // rows in program order
};
} // namespace

/// The most bytes of buffers of the class that are in use at one row.
static int64_t peakOf(StorageClass storageClass, int64_t numRows,
                      const llvm::MapVector<BufferOp, Lifetime> &lifetimes) {
  SmallVector<int64_t> change(numRows + 1, 0);
  for (auto &[buffer, lifetime] : lifetimes) {
    if (BufferOp(buffer).getStorage() != storageClass || lifetime.first < 0)
      continue;
    change[lifetime.first] += lifetime.arena.bytes;
    change[lifetime.last + 1] -= lifetime.arena.bytes;
  }
  int64_t now = 0, peak = 0;
  for (int64_t delta : change)
    peak = std::max(peak, now += delta);
  return peak;
}

void assignOffsets(ProgramOp program) {
  Block &block = program.getBody().front();
  int64_t base = 0;
  int64_t byClass[6] = {};
  for (auto argument : block.getOps<ArgOp>()) {
    argument.setOffset(base);
    int64_t bytes = argument.getResult().getType().getNumBytes();
    base += llvm::alignTo(bytes, kBufferAlignment);
    byClass[unsigned(argument.getStorageClass())] += bytes;
  }

  unsigned numStreams = 1;
  for (auto row : block.getOps<RowOpInterface>())
    numStreams = std::max<unsigned>(numStreams, row.getStreamIndex() + 1);
  using Clock = SmallVector<unsigned, 2>;
  SmallVector<Clock> now(numStreams, Clock(numStreams, 0));
  DenseMap<Value, Clock> signalled; // token -> what its row's end implies
  llvm::MapVector<BufferOp, Lifetime> lifetimes;
  for (auto buffer : block.getOps<BufferOp>()) {
    Lifetime &lifetime = lifetimes[buffer];
    lifetime.arena.bytes = buffer.getResult().getType().getNumBytes();
    lifetime.arena.last.assign(numStreams, 0);
    lifetime.arena.known.assign(numStreams, ~0u);
  }
  int64_t numRows = 0;
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
      Lifetime &lifetime = lifetimes[buffer];
      for (unsigned s = 0; s < numStreams; ++s)
        lifetime.arena.known[s] = std::min(lifetime.arena.known[s], clock[s]);
      lifetime.arena.last[row.getStreamIndex()] = clock[row.getStreamIndex()] + 1;
      lifetime.first = lifetime.first < 0 ? numRows : lifetime.first;
      lifetime.last = numRows;
    }
    ++clock[row.getStreamIndex()];
    if (Value token = row.getSignal())
      signalled[token] = clock;
    ++numRows;
  }

  SmallVector<ArenaBuffer> buffers;
  for (auto &[buffer, lifetime] : lifetimes)
    buffers.push_back(lifetime.arena);
  int64_t end = assignArena(buffers, base, kBufferAlignment);
  for (auto [entry, placed] : llvm::zip_equal(lifetimes, buffers))
    entry.first.setOffset(placed.offset);
  program.setArena(end);

  for (StorageClass storageClass :
       {StorageClass::grad, StorageClass::activation, StorageClass::workspace})
    byClass[unsigned(storageClass)] += peakOf(storageClass, numRows, lifetimes);
  program.setBytesAttr(BytesAttr::get(
      program.getContext(), byClass[unsigned(StorageClass::param)],
      byClass[unsigned(StorageClass::grad)], byClass[unsigned(StorageClass::optimizer)],
      byClass[unsigned(StorageClass::activation)] + byClass[unsigned(StorageClass::input)],
      byClass[unsigned(StorageClass::workspace)]));
}

} // namespace shoal::exec
