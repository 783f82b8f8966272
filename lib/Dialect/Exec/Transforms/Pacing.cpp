// Reductions and messages, and the memory that they hold while they are under way.
#include "Pacing.h"

#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shoal::exec {

// Reductions

/// Under way when one starts, where there is memory for more: what they hold is hard to place close together.
static constexpr size_t kMaxRunning = 2;

ReductionPacer::ReductionPacer(const PositionClass &at, ArrayRef<PlacedRow> rows, const PacedRows &paced)
    : inUse(rows.size() + 1), releases(rows.size()), microbatches(rows.size(), -1) {
  for (auto [number, row] : llvm::enumerate(rows)) {
    auto it = paced.microbatches.find(row.op);
    if (it != paced.microbatches.end())
      microbatches[number] = it->second;
    else if (number > 0)
      microbatches[number] = microbatches[number - 1];
  }
  for (auto [buffer, span] : findSpans(at)) {
    int64_t bytes = llvm::alignTo(buffer.getResult().getType().getNumBytes(), kBufferAlignment);
    inUse[span.first] += bytes;
    inUse[span.last + 1] -= bytes;
    if (rows[span.last].stream != 0 && paced.reductions.contains(rows[span.last].op))
      releases[span.last] += bytes;
  }
  for (size_t i = 1; i < inUse.size(); ++i)
    inUse[i] += inUse[i - 1];
  fullest = *llvm::max_element(inUse);
}

bool ReductionPacer::mustWait(unsigned row) const {
  if (running.empty())
    return false;
  if (inUse[row] + held <= fullest)
    return releases[row] > 0 && running.size() >= kMaxRunning;
  return running.size() > 1 || releases[row] > 0 || microbatches[row] != microbatches[running.front()];
}

void ReductionPacer::start(unsigned row) {
  if (releases[row] == 0)
    return;
  running.push_back(row);
  held += releases[row];
}

void ReductionPacer::end() {
  held -= releases[running.front()];
  running.pop_front();
}

// Messages

static SmallVector<Operation *> getStorages(ArrayRef<Value> buffers) {
  return llvm::map_to_vector(buffers, [](Value buffer) { return getByteRange(buffer).storage; });
}

MessagePacer::MessagePacer(ArrayRef<PlacedRow> rows, const PacedRows &paced, int64_t position, unsigned numStreams)
    : rows(rows), paced(paced), position(position), lastSends(numStreams) {
  if (paced.messages.empty())
    return;
  DenseMap<Operation *, unsigned> firstWriters; // of storages
  for (auto [number, row] : llvm::enumerate(rows)) {
    SmallVector<Value> reads, writes;
    getAccesses(row.op, position, reads, writes);
    if (paced.messages.contains(row.op))
      for (Operation *storage : getStorages(reads))
        if (auto writer = firstWriters.find(storage); writer != firstWriters.end())
          sentBy[writer->second].push_back(row.stream);
    for (Operation *storage : getStorages(writes))
      firstWriters.try_emplace(storage, number);
  }
}

std::optional<unsigned> MessagePacer::getComputed(unsigned row, std::optional<unsigned> computed) const {
  if (!paced.messages.contains(rows[row].op))
    return {};
  SmallVector<Value> reads, writes;
  getAccesses(rows[row].op, position, reads, writes);
  auto found = beforeReading.find(rows[row].stream);
  return writes.empty() ? std::nullopt : found == beforeReading.end() ? computed : found->second;
}

SmallVector<unsigned, 2> MessagePacer::getSends(unsigned row) const {
  SmallVector<unsigned, 2> sends;
  for (unsigned stream : sentBy.lookup(row))
    if (lastSends[stream])
      sends.push_back(*lastSends[stream]);
  return sends;
}

void MessagePacer::start(unsigned number, std::optional<unsigned> computed) {
  if (paced.messages.empty())
    return;
  const PlacedRow &row = rows[number];
  SmallVector<Value> reads, writes;
  getAccesses(row.op, position, reads, writes);
  if (row.stream == 0)
    for (Operation *storage : getStorages(reads))
      if (auto arrived = arrivedBy.find(storage); arrived != arrivedBy.end()) {
        beforeReading[arrived->second] = computed;
        arrivedBy.erase(arrived);
      }
  if (!paced.messages.contains(row.op))
    return;
  if (!reads.empty())
    lastSends[row.stream] = number;
  for (Operation *storage : getStorages(writes))
    arrivedBy[storage] = row.stream;
}

} // namespace shoal::exec
