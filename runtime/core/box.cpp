// Boxes from mesh coordinates.
#include "core/box.h"

#include <algorithm>

namespace shoal::rt {

uint64_t Box::localElements() const {
  uint64_t count = 1;
  for (const BoxDim &dim : dims)
    count *= dim.local;
  return count;
}

uint64_t Box::validElements() const {
  uint64_t count = 1;
  for (const BoxDim &dim : dims)
    count *= dim.valid;
  return count;
}

Box boxOf(const Program &program, std::span<const Dim> dims, uint32_t position) {
  Box box;
  for (const Dim &dim : dims) {
    uint64_t start = program.linear(position, program.axesOf(dim)) * dim.local;
    uint64_t valid = dim.global > start ? std::min(dim.local, dim.global - start) : 0;
    box.dims.push_back({dim.global, start, dim.local, valid});
  }
  return box;
}

std::vector<uint32_t> shardingAxes(const Program &program, std::span<const Dim> dims) {
  std::vector<uint32_t> axes;
  for (const Dim &dim : dims)
    axes.insert(axes.end(), program.axesOf(dim).begin(), program.axesOf(dim).end());
  return axes;
}

std::vector<uint32_t> firstHolders(const Program &program, std::span<const uint32_t> axes, Positions holders) {
  std::vector<bool> isFound(program.extent(axes), false);
  std::vector<uint32_t> first;
  for (uint32_t position = 0; position < program.numPositions() && first.size() < isFound.size(); ++position) {
    if (!program.isIn(holders, position))
      continue;
    uint32_t part = program.linear(position, axes);
    if (!isFound[part])
      first.push_back(position);
    isFound[part] = true;
  }
  return first;
}

} // namespace shoal::rt
