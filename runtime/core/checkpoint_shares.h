// Which position writes what of a program's tensors into a checkpoint.
#ifndef SHOAL_RT_CORE_CHECKPOINT_SHARES_H
#define SHOAL_RT_CORE_CHECKPOINT_SHARES_H

#include "core/placed_box.h"
#include "core/program.h"

#include <vector>

namespace shoal::rt {

// Whether a checkpoint holds it: what keeps its contents from step to step.
constexpr bool isSaved(TensorKind kind) { return kind != TensorKind::Grad; }

// The boxes of a tensor that `position` holds; offsets are elements of its view. None where it holds padding
// alone, or nothing of it.
std::vector<PlacedBox> boxesAt(const Program &program, const Tensor &tensor, uint32_t position);

// What one position writes of one tensor. Together the shares hold every element once: of positions that hold the same,
// one writes, and among those the one that has least to write.
struct Share {
  const Tensor *tensor;
  uint32_t writer;
  std::vector<PlacedBox> boxes;
};
std::vector<Share> shareOut(const Program &program);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_SHARES_H
