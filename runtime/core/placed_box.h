// Boxes of a logical tensor as checkpoints hold them, each with where its elements lie: in a file (dense), in a rank's
// memory, or in a whole tensor. What goes from one place to another are the elements that two boxes share.
#ifndef SHOAL_RT_CORE_PLACED_BOX_H
#define SHOAL_RT_CORE_PLACED_BOX_H

#include "core/box.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shoal::rt {

struct PlacedBox {
  std::vector<uint64_t> start, shape; // in the logical tensor
  std::vector<uint64_t> strides;      // elements from one index of a dimension to the next
  uint64_t offset = 0;                // of the element at `start`, in elements

  uint64_t elements() const;
  // One box after the other in row-major order, as a file holds it.
  static PlacedBox dense(std::vector<uint64_t> start, std::vector<uint64_t> shape);
};

// The boxes of elements [begin, end) of `box`'s buffer, flattened row-major, where element `begin` lies at `at`: part
// of a row, whole rows, part of a row, and so for each dimension; at most 2 * rank - 1 of them. Padding is in none.
std::vector<PlacedBox> boxesOfRange(const Box &box, uint64_t begin, uint64_t end, uint64_t at);

// Calls run(offset in a, offset in b, count) for the elements that both hold, of the same logical tensor.
template <typename Run> void forEachCommonRun(const PlacedBox &a, const PlacedBox &b, Run run);

template <typename Run> void forEachCommonRun(const PlacedBox &a, const PlacedBox &b, Run run) {
  size_t rank = a.shape.size();
  uint64_t offsetA = a.offset, offsetB = b.offset;
  std::vector<uint64_t> extent(rank);
  for (size_t d = 0; d < rank; ++d) {
    uint64_t lower = std::max(a.start[d], b.start[d]);
    uint64_t upper = std::min(a.start[d] + a.shape[d], b.start[d] + b.shape[d]);
    if (lower >= upper)
      return;
    extent[d] = upper - lower;
    offsetA += (lower - a.start[d]) * a.strides[d];
    offsetB += (lower - b.start[d]) * b.strides[d];
  }
  // Trailing dimensions that are contiguous in both places join in one run.
  uint64_t count = 1;
  size_t outer = rank;
  while (outer > 0 && (extent[outer - 1] == 1 || (a.strides[outer - 1] == count && b.strides[outer - 1] == count)))
    count *= extent[--outer];
  std::vector<uint64_t> index(outer, 0);
  while (true) {
    uint64_t atA = offsetA, atB = offsetB;
    for (size_t d = 0; d < outer; ++d) {
      atA += index[d] * a.strides[d];
      atB += index[d] * b.strides[d];
    }
    run(atA, atB, count);
    size_t d = outer;
    while (d > 0 && ++index[d - 1] == extent[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PLACED_BOX_H
