// The first holder of each part sends it; rank 0 takes them in mesh order.
#include "core/gather.h"
#include "shoal-rt/traffic.h"

#include <algorithm>

namespace shoal::rt {
namespace {

// `holders`: of each part the position that sends it. `partAt`: the part of a position. `rangeOf`: the bytes of a part
// in its buffer, where they begin and how many.
template <typename PartAt, typename RangeOf, typename Take>
void gather(const World &world, const Program &program, uint32_t position, const char *local,
            const std::vector<uint32_t> &holders, PartAt partAt, RangeOf rangeOf, Take take) {
  Beacon::Together together(world.beacon(), "the collection of tensors");
  if (world.rank() != 0) {
    if (!std::ranges::binary_search(holders, position))
      return;
    auto [begin, bytes] = rangeOf(partAt(position));
    world.sendToFirst(local + begin, bytes);
    return;
  }
  std::vector<char> received;
  for (uint32_t holder : holders) {
    auto part = partAt(holder);
    auto [begin, bytes] = rangeOf(part);
    if (holder == position) {
      take(part, local + begin);
      continue;
    }
    received.resize(bytes);
    world.receiveFrom(int(program.deviceIds()[holder]), received.data(), received.size());
    take(part, received.data());
  }
}

} // namespace

void gatherBoxes(const World &world, const Program &program, std::span<const Dim> dims, Positions holders,
                 uint64_t elementBytes, uint32_t position, const char *local, const TakeBox &take) {
  gather(
      world, program, position, local, firstHolders(program, shardingAxes(program, dims), holders),
      [&](uint32_t holder) { return boxOf(program, dims, holder); },
      [&](const Box &box) { return std::pair(uint64_t(0), box.localElements() * elementBytes); }, take);
}

void gatherPieces(const World &world, const Program &program, const Tensor &tensor, uint32_t position,
                  const char *local, const TakePiece &take) {
  uint64_t size = elementBytes(program.views()[tensor.view].dtype);
  gather(
      world, program, position, local, 
      firstHolders(program, shardingAxes(program, tensor), program.holders(tensor)),
      [&](uint32_t holder) { return pieceOf(program, tensor, holder); },
      [&](const Piece &piece) { return std::pair(piece.at * size, piece.elements() * size); },
      [&](Piece piece, const char *data) {
        piece.at = 0;
        take(piece, data);
      });
}

} // namespace shoal::rt
