// The box of a logical tensor that a mesh position holds, and copies between the two.
// A shard has ceil(size / shards) elements per dimension; the last shards may reach past
// the tensor's end, and what lies there is padding.
#ifndef SHOAL_RT_CORE_BOX_H
#define SHOAL_RT_CORE_BOX_H

#include "core/program.h"

#include <vector>

namespace shoal::rt {

struct BoxDim {
  uint64_t global;         // size of the logical dimension
  uint64_t start;          // first logical element of this shard (may lie past the end)
  uint64_t local;          // size of the shard's buffer
  uint64_t valid;          // logical elements in it
  uint64_t localStart = 0; // where they lie in the buffer
};

class Box {
public:
  std::vector<BoxDim> dims;

  uint64_t localElements() const;
  uint64_t validElements() const;

  // Calls run(globalOffset, localOffset, count) for maximal contiguous runs, in order of
  // the logical tensor.
  template <typename Run> void forEachRun(Run run) const;
};

Box boxOf(const Program &program, std::span<const Dim> dims, uint32_t position);

// The mesh axes that shard `dims`.
std::vector<uint32_t> shardingAxes(const Program &program, std::span<const Dim> dims);

// Of each part that sharding over `axes` makes, the first of `holders` that has it; in mesh order.
std::vector<uint32_t> firstHolders(const Program &program, std::span<const uint32_t> axes, Positions holders);

template <typename Run> void Box::forEachRun(Run run) const {
  if (validElements() == 0)
    return;
  // Trailing dimensions that are whole on both sides join the run of the one before.
  size_t outer = dims.size();
  uint64_t inner = 1;
  while (outer > 0) {
    const BoxDim &dim = dims[outer - 1];
    if (dim.valid != dim.global || dim.valid != dim.local)
      break;
    inner *= dim.global;
    --outer;
  }
  uint64_t count = inner;
  uint64_t globalBase = 0, localBase = 0, globalStride = inner, localStride = inner;
  if (outer > 0) {
    const BoxDim &dim = dims[outer - 1];
    count *= dim.valid;
    globalBase = dim.start * inner;
    localBase = dim.localStart * inner;
    globalStride *= dim.global;
    localStride *= dim.local;
    --outer;
  }
  std::vector<uint64_t> index(outer, 0);
  while (true) {
    uint64_t global = globalBase, local = localBase, gs = globalStride, ls = localStride;
    for (size_t d = outer; d-- > 0;) {
      global += (dims[d].start + index[d]) * gs;
      local += (dims[d].localStart + index[d]) * ls;
      gs *= dims[d].global;
      ls *= dims[d].local;
    }
    run(global, local, count);
    size_t d = outer;
    while (d > 0 && ++index[d - 1] == dims[d - 1].valid)
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_BOX_H
