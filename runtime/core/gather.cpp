// The first holder of each part sends it; rank 0 takes them in mesh order.
#include "core/gather.h"
#include "shoal-rt/traffic.h"

namespace shoal::rt {
namespace {

// `holdsFirst`: whether a position is the first that holds its part. `partAt`: the part of a position. `rangeOf`: the
// bytes of a part in its buffer, where they begin and how many.
template <typename HoldsFirst, typename PartAt, typename RangeOf, typename Take>
void gather(const World &world, const Program &program, uint32_t position, const char *local,
            HoldsFirst holdsFirst, PartAt partAt, RangeOf rangeOf, Take take) {
  Beacon::Together together(world.beacon(), "the collection of tensors");
  if (world.rank() != 0) {
    if (!holdsFirst(position))
      return;
    auto [begin, bytes] = rangeOf(partAt(position));
    world.sendToFirst(local + begin, bytes);
    return;
  }
  std::vector<char> received;
  for (uint32_t other = 0; other < program.numPositions(); ++other) {
    if (!holdsFirst(other))
      continue;
    auto part = partAt(other);
    auto [begin, bytes] = rangeOf(part);
    if (other == position) {
      take(part, local + begin);
      continue;
    }
    received.resize(bytes);
    world.receiveFrom(int(program.deviceIds()[other]), received.data(), received.size());
    take(part, received.data());
  }
}

} // namespace

void gatherBoxes(const World &world, const Program &program, std::span<const Dim> dims,
                 uint64_t elementBytes, uint32_t position, const char *local,
                 const TakeBox &take) {
  gather(
      world, program, position, local,
      [&](uint32_t other) { return holdsFirstCopy(program, dims, other); },
      [&](uint32_t other) { return boxOf(program, dims, other); },
      [&](const Box &box) { return std::pair(uint64_t(0), box.localElements() * elementBytes); }, take);
}

void gatherPieces(const World &world, const Program &program, const Tensor &tensor, uint32_t position,
                  const char *local, const TakePiece &take) {
  uint64_t size = elementBytes(program.views()[tensor.view].dtype);
  gather(
      world, program, position, local,
      [&](uint32_t other) { return holdsFirstCopy(program, tensor, other); },
      [&](uint32_t other) { return pieceOf(program, tensor, other); },
      [&](const Piece &piece) { return std::pair(piece.at * size, piece.elements() * size); },
      [&](Piece piece, const char *data) {
        piece.at = 0;
        take(piece, data);
      });
}

} // namespace shoal::rt
