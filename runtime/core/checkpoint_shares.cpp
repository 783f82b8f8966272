// Deals the pieces of tensors out to the positions that hold them.
#include "core/checkpoint_shares.h"
#include "core/piece.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <functional>
#include <map>

namespace shoal::rt {
namespace {

struct Part {
  const Tensor *tensor;
  uint64_t bytes = 0;
  uint32_t writer = 0;
  std::vector<uint32_t> holders;
  std::vector<PlacedBox> boxes;
};

// What a position holds, to compare it with others.
std::vector<uint64_t> keyOf(const std::vector<PlacedBox> &boxes) {
  std::vector<uint64_t> key;
  for (const PlacedBox &box : boxes) {
    key.insert(key.end(), box.start.begin(), box.start.end());
    key.insert(key.end(), box.shape.begin(), box.shape.end());
  }
  return key;
}

} // namespace

std::vector<PlacedBox> boxesAt(const Program &program, const Tensor &tensor, uint32_t position) {
  if (!program.holds(tensor, position))
    return {};
  Piece piece = pieceOf(program, tensor, position);
  return boxesOfRange(piece.box, piece.begin, piece.end, piece.at);
}

std::vector<Share> shareOut(const Program &program) {
  std::vector<Part> parts;
  for (const Tensor &tensor : program.tensors()) {
    if (!isSaved(tensor.kind))
      continue;
    std::map<std::vector<uint64_t>, size_t> known; // of this tensor, into `parts`
    for (uint32_t position = 0; position < program.numPositions(); ++position) {
      std::vector<PlacedBox> boxes = boxesAt(program, tensor, position);
      if (boxes.empty())
        continue;
      auto [at, isNew] = known.try_emplace(keyOf(boxes), parts.size());
      if (isNew) {
        Part &part = parts.emplace_back(Part{&tensor, 0, 0, {}, std::move(boxes)});
        for (const PlacedBox &box : part.boxes)
          part.bytes += box.elements() * elementBytes(program.views()[tensor.view].dtype);
      }
      parts[at->second].holders.push_back(position);
    }
  }
  // Largest first, so that the small ones even it out.
  std::vector<Part *> order;
  for (Part &part : parts)
    order.push_back(&part);
  std::ranges::stable_sort(order, std::greater(), &Part::bytes);
  std::vector<uint64_t> load(program.numPositions(), 0);
  for (Part *part : order) {
    part->writer = *std::ranges::min_element(part->holders, {}, [&](uint32_t holder) { return load[holder]; });
    load[part->writer] += part->bytes;
  }
  std::vector<Share> shares;
  for (Part &part : parts)
    shares.push_back({part.tensor, part.writer, std::move(part.boxes)});
  return shares;
}

} // namespace shoal::rt
