// The part of a logical tensor that a mesh position holds. A tensor of its own lies there as its box; of one in a
// bucket it is a range of the box's elements, row-major, since the flat axes cut the bucket where they happen to.
#ifndef SHOAL_RT_CORE_PIECE_H
#define SHOAL_RT_CORE_PIECE_H

#include "core/box.h"

#include <algorithm>

namespace shoal::rt {

struct Piece {
  Box box;             // over the axes that shard dimensions
  uint64_t begin, end; // of box.localElements(): those that are here
  uint64_t at;         // the element of the storage where `begin` lies

  uint64_t elements() const { return end - begin; }

  // Calls run(globalOffset, storageOffset, count) for maximal contiguous runs of logical elements, in the order of the
  // tensor; padding is left out.
  template <typename Run> void forEachRun(Run run) const {
    box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
      uint64_t from = std::max(local, begin), to = std::min(local + count, end);
      if (from < to)
        run(global + (from - local), at + (from - begin), to - from);
    });
  }
};

Piece pieceOf(const Program &program, const Tensor &tensor, uint32_t position);

// Of what lies as its box: an input, an output.
Piece pieceOf(Box box);

// The mesh axes that cut it into pieces.
std::vector<uint32_t> shardingAxes(const Program &program, const Tensor &tensor);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PIECE_H
