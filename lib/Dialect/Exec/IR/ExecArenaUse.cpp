// The curve of bytes in use, from the rows' accesses alone.
#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include "llvm/Support/MathExtras.h"

#include <queue>

using namespace mlir;

namespace shoal::exec {

llvm::MapVector<BufferOp, RowSpan> findSpans(ProgramOp program) {
  llvm::MapVector<BufferOp, RowSpan> spans;
  for (auto buffer : program.getBody().getOps<BufferOp>())
    spans[buffer] = {};
  int64_t number = 0;
  SmallVector<Value> buffers;
  for (auto row : program.getBody().getOps<RowOpInterface>()) {
    buffers.clear();
    row.getReads(buffers);
    row.getWrites(buffers);
    for (Value value : buffers)
      if (auto buffer = dyn_cast_or_null<BufferOp>(getByteRange(value).storage)) {
        RowSpan &span = spans[buffer];
        span.first = span.first < 0 ? number : span.first;
        span.last = number;
      }
    ++number;
  }
  return spans;
}

SmallVector<ArenaUse> measureArena(ProgramOp program) {
  auto rows = program.getBody().getOps<RowOpInterface>();
  size_t numRows = std::max<size_t>(1, std::distance(rows.begin(), rows.end()));
  ArenaUse whole;
  auto endOf = [](int64_t offset, BufferType type) {
    return int64_t(llvm::alignTo(offset + type.getNumBytes(), kBufferAlignment));
  };
  for (auto argument : program.getBody().getOps<ArgOp>()) {
    if (getMemory(argument.getResult()) == Memory::host)
      continue; // the arena is the device's
    BufferType type = argument.getResult().getType();
    whole.bytes[unsigned(argument.getStorageClass())] += type.getNumBytes();
    whole.end = std::max(whole.end, endOf(argument.getOffset(), type));
  }

  // Bytes change where a span begins and behind its end; ends are kept until they have passed.
  struct Placed {
    int64_t end, last;
    bool operator<(const Placed &other) const { return end < other.end; }
  };
  SmallVector<std::array<int64_t, std::tuple_size_v<decltype(whole.bytes)>>> changes(numRows + 1);
  SmallVector<SmallVector<Placed, 2>> begins(numRows);
  for (auto &[op, span] : findSpans(program)) {
    BufferOp buffer = op;
    if (span.first < 0 || getMemory(buffer.getResult()) == Memory::host)
      continue;
    BufferType type = buffer.getResult().getType();
    changes[span.first][unsigned(buffer.getStorage())] += type.getNumBytes();
    changes[span.last + 1][unsigned(buffer.getStorage())] -= type.getNumBytes();
    begins[span.first].push_back({endOf(buffer.getOffset(), type), span.last});
  }
  SmallVector<ArenaUse> curve(numRows, whole);
  std::array<int64_t, std::tuple_size_v<decltype(whole.bytes)>> now = whole.bytes;
  std::priority_queue<Placed> highest;
  for (size_t row = 0; row < numRows; ++row) {
    for (auto [bytes, change] : llvm::zip_equal(now, changes[row]))
      bytes += change;
    for (const Placed &placed : begins[row])
      highest.push(placed);
    while (!highest.empty() && highest.top().last < int64_t(row))
      highest.pop();
    curve[row].bytes = now;
    if (!highest.empty())
      curve[row].end = std::max(whole.end, highest.top().end);
  }
  return curve;
}

} // namespace shoal::exec
