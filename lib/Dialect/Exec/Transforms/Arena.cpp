// Greedy by size with best fit (Pisarchyk and Lee, 2020): close to the lower bound on the
// straight-line programs of training, and quadratic only in the number of buffers.
#include "Arena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace shoal::exec {

bool endsBefore(const ArenaBuffer &a, const ArenaBuffer &b) {
  for (auto [last, known] : llvm::zip_equal(a.last, b.known))
    if (last > known)
      return false;
  return true;
}

int64_t assignArena(llvm::MutableArrayRef<ArenaBuffer> buffers, int64_t base, int64_t alignment) {
  llvm::SmallVector<unsigned> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order,
                    [&](unsigned a, unsigned b) { return buffers[a].bytes > buffers[b].bytes; });
  base = llvm::alignTo(base, alignment);
  int64_t end = base;
  // Placed buffers by offset.
  llvm::SmallVector<unsigned> placed;
  for (unsigned i : order) {
    ArenaBuffer &buffer = buffers[i];
    int64_t bytes = llvm::alignTo(buffer.bytes, alignment);
    int64_t free = base, best = -1, bestGap = 0;
    for (unsigned j : placed) {
      const ArenaBuffer &other = buffers[j];
      if (endsBefore(other, buffer) || endsBefore(buffer, other))
        continue;
      int64_t gap = other.offset - free;
      if (gap >= bytes && (best < 0 || gap < bestGap)) {
        best = free;
        bestGap = gap;
      }
      free = std::max<int64_t>(free, llvm::alignTo(other.offset + other.bytes, alignment));
    }
    buffer.offset = best >= 0 ? best : free;
    end = std::max(end, buffer.offset + bytes);
    auto at = llvm::upper_bound(
        placed, i, [&](unsigned a, unsigned b) { return buffers[a].offset < buffers[b].offset; });
    placed.insert(at, i);
  }
  return end;
}

} // namespace shoal::exec
