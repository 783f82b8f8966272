// Offsets for buffers with known lifetimes: two may share bytes only if one is known to be done
// with before the other is touched. Plain data, so that it can be tested with random lifetimes.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ARENA_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ARENA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace shoal::exec {

/// A buffer and when it is in use. Time is not a line: every stream has its own count of rows.
struct ArenaBuffer {
  int64_t bytes = 0;
  /// When it is first touched, in an order that agrees with the streams': what ends before a buffer was born before it.
  unsigned birth = ~0u;
  /// Per stream: when its last access there has ended, the stream has done this many rows (0:
  /// none).
  llvm::SmallVector<unsigned, 2> last;
  /// Per stream: this many rows are known to have ended before any access to the buffer starts.
  llvm::SmallVector<unsigned, 2> known;
  int64_t offset = 0; // result
};

/// Whether every access of `a` has ended before any of `b` starts.
bool endsBefore(const ArenaBuffer &a, const ArenaBuffer &b);

/// So many pairs of buffers in use at once are kept, which takes 8 bytes for each: more than 32 micro-batches of Llama 3
/// 70B have. Beyond it each pair of all buffers is asked for, which is quadratic.
inline constexpr int64_t kMostMeetings = 256'000'000;

/// Sets offsets from `base` on, multiples of `alignment`. Returns the end of the arena, a multiple of `alignment`.
/// `mostMeetings` decides what is kept in memory, not what the offsets are.
int64_t assignArena(llvm::MutableArrayRef<ArenaBuffer> buffers, int64_t base, int64_t alignment,
                    int64_t mostMeetings = kMostMeetings);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ARENA_H
