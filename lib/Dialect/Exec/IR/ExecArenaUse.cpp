// The curve of bytes in use, from the rows' accesses alone.
#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <queue>

using namespace mlir;

namespace shoal::exec {

SmallVector<std::pair<BufferOp, RowSpan>> findSpans(const PositionClass &at) {
  llvm::MapVector<BufferOp, RowSpan> spans;
  int64_t number = 0;
  SmallVector<Value> buffers;
  for (Operation *op : at.steps) {
    auto row = dyn_cast<RowOpInterface>(op);
    if (!row)
      continue;
    buffers.clear();
    getAccesses(row, at.positions.front(), buffers, buffers);
    for (Value value : buffers)
      if (auto buffer = dyn_cast_or_null<BufferOp>(getByteRange(value).storage)) {
        RowSpan &span = spans[buffer];
        span.first = span.first < 0 ? number : span.first;
        span.last = number;
      }
    ++number;
  }
  SmallVector<std::pair<BufferOp, RowSpan>> result(spans.begin(), spans.end());
  llvm::sort(result, [](const auto &a, const auto &b) {
    return a.first != b.first && BufferOp(a.first)->isBeforeInBlock(BufferOp(b.first));
  });
  return result;
}

SmallVector<ArenaUse> measureArena(const PositionClass &at) {
  size_t numRows = std::max<size_t>(1, llvm::count_if(at.steps, [](Operation *op) { return isa<RowOpInterface>(op); }));
  ArenaUse whole;
  auto endOf = [](int64_t offset, BufferType type) {
    return int64_t(llvm::alignTo(offset + type.getNumBytes(), kBufferAlignment));
  };
  for (ArgOp argument : at.arguments) {
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
  for (auto [buffer, span] : findSpans(at)) {
    if (getMemory(buffer.getResult()) == Memory::host)
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

ArenaUse measureMost(const PositionClass &at) {
  ArenaUse most;
  for (const ArenaUse &use : measureArena(at)) {
    for (auto [bytes, now] : llvm::zip_equal(most.bytes, use.bytes))
      bytes = std::max(bytes, now);
    most.end = std::max(most.end, use.end);
  }
  return most;
}

BytesAttr getBytes(MLIRContext *context, const ArenaUse &most) {
  return BytesAttr::get(context, most.get(StorageClass::param), most.get(StorageClass::grad),
                        most.get(StorageClass::optimizer),
                        most.get(StorageClass::activation) + most.get(StorageClass::input),
                        most.get(StorageClass::workspace));
}

} // namespace shoal::exec
