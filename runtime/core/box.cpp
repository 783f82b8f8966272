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

bool isFirstBut(const Program &program, std::span<const uint32_t> axes, uint32_t position) {
  for (uint32_t axis = 0; axis < program.axes().size(); ++axis)
    if (program.coordinate(position, axis) != 0 && std::find(axes.begin(), axes.end(), axis) == axes.end())
      return false;
  return true;
}

bool holdsFirstCopy(const Program &program, std::span<const Dim> dims, uint32_t position) {
  std::vector<uint32_t> axes;
  for (const Dim &dim : dims)
    axes.insert(axes.end(), program.axesOf(dim).begin(), program.axesOf(dim).end());
  return isFirstBut(program, axes, position);
}

} // namespace shoal::rt
