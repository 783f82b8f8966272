// Pieces from mesh coordinates.
#include "core/piece.h"

namespace shoal::rt {

Piece pieceOf(Box box) {
  uint64_t elements = box.localElements();
  return {std::move(box), 0, elements, 0};
}

Piece pieceOf(const Program &program, const Tensor &tensor, uint32_t position) {
  Piece whole = pieceOf(boxOf(program, program.dims(tensor), position));
  if (!tensor.inBucket)
    return whole;
  // Elements of the whole bucket: those of the tensor, and those of this position's shard.
  uint64_t local = program.views()[tensor.view].elements;
  uint64_t shard = program.linear(position, program.flatAxes(tensor)) * local;
  uint64_t from = std::max(tensor.first, shard), to = std::min(tensor.first + tensor.end - tensor.begin, shard + local);
  if (from >= to)
    return {std::move(whole.box), 0, 0, 0};
  return {std::move(whole.box), tensor.begin + (from - tensor.first), tensor.begin + (to - tensor.first), from - shard};
}

std::vector<uint32_t> shardingAxes(const Program &program, const Tensor &tensor) {
  std::vector<uint32_t> axes = shardingAxes(program, program.dims(tensor));
  axes.insert(axes.end(), program.flatAxes(tensor).begin(), program.flatAxes(tensor).end());
  return axes;
}

} // namespace shoal::rt
