// Whether boxes hold each element of a tensor exactly once: what makes a checkpoint's index believable.
#ifndef SHOAL_RT_CORE_BOX_COVER_H
#define SHOAL_RT_CORE_BOX_COVER_H

#include "core/checkpoint_index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::rt {

// The dimensions along which some box is a part of the tensor.
std::vector<size_t> cutDimensions(const IndexTensor &tensor);

// Why findCoverFault() would take more than some seconds, if it would.
std::optional<std::string> findCoverCost(const IndexTensor &tensor);

struct CoverFault {
  std::vector<uint64_t> element;
  uint64_t boxes = 0; // that hold it: none, or several
};

// The first element, row-major, that is not in exactly one box. All boxes must be non-empty and lie in the tensor,
// which may have no boxes where it has no elements. For n boxes and c cut dimensions it takes O(2^c c n log n) time,
// whatever their sizes, and O(c n) memory.
std::optional<CoverFault> findCoverFault(const IndexTensor &tensor);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_BOX_COVER_H
