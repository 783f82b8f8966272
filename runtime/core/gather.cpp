// The first holder of each box sends it; rank 0 takes them in mesh order.
#include "core/gather.h"

namespace shoal::rt {

void gatherBoxes(const World &world, const Program &program, std::span<const Dim> dims,
                 uint64_t elementBytes, uint32_t position, const char *local,
                 const TakeBox &take) {
  Beacon::Together together(world.beacon(), "the collection of tensors");
  auto bytesOf = [&](const Box &box) { return box.localElements() * elementBytes; };
  if (world.rank() != 0) {
    if (holdsFirstCopy(program, dims, position))
      world.sendToFirst(local, bytesOf(boxOf(program, dims, position)));
    return;
  }
  std::vector<char> received;
  for (uint32_t other = 0; other < program.numPositions(); ++other) {
    if (!holdsFirstCopy(program, dims, other))
      continue;
    Box box = boxOf(program, dims, other);
    if (other == position) {
      take(box, local);
      continue;
    }
    received.resize(bytesOf(box));
    world.receiveFrom(int(program.deviceIds()[other]), received.data(), received.size());
    take(box, received.data());
  }
}

} // namespace shoal::rt
