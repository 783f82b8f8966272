// The most that a size of a model may be, on the command lines of the tools that make models and their data and in a
// config.json: tokens and rows of a batch, entries of a vocabulary, elements of a hidden dimension.
#ifndef SHOAL_RT_MOST_SIZE_H
#define SHOAL_RT_MOST_SIZE_H

#include <cstdint>

namespace shoal::rt {

inline constexpr int64_t kMostSize = int64_t(1) << 24;

} // namespace shoal::rt

#endif // SHOAL_RT_MOST_SIZE_H
