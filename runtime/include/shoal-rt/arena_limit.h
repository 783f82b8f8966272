// The largest arena, which bounds every size in a program: the runtime refuses more, and the compiler emits no more.
#ifndef SHOAL_RT_ARENA_LIMIT_H
#define SHOAL_RT_ARENA_LIMIT_H

#include <cstdint>

namespace shoal::rt {

// More than any machine has; keeps later products inside 64 bits.
inline constexpr uint64_t kMaxArenaBytes = uint64_t(1) << 46;

} // namespace shoal::rt

#endif // SHOAL_RT_ARENA_LIMIT_H
