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

bool holdsFirstCopy(const Program &program, std::span<const Dim> dims, uint32_t position) {
  std::vector<bool> sharded(program.axes().size(), false);
  for (const Dim &dim : dims)
    for (uint32_t axis : program.axesOf(dim))
      sharded[axis] = true;
  for (uint32_t axis = 0; axis < sharded.size(); ++axis)
    if (!sharded[axis] && program.coordinate(position, axis) != 0)
      return false;
  return true;
}

} // namespace shoal::rt
