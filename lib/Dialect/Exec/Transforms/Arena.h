// Offsets for buffers with known lifetimes: two may share bytes only if one is known to be done
// with before the other is touched, or if no mesh position has both. Plain data, so that it can be tested with random
// lifetimes.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ARENA_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ARENA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace shoal::exec {

/// A buffer and when it is in use. Time is not a line: every stream of a class of positions has its own count of rows.
struct ArenaBuffer {
  int64_t bytes = 0;
  /// The classes of mesh positions that have it, at least one.
  llvm::SmallBitVector classes = llvm::SmallBitVector(1, true);
  /// When it is first touched, in an order that agrees with the streams': what ends before a buffer of the same class
  /// was born before it.
  unsigned birth = ~0u;
  /// Per class that has it, in order, and stream: when its last access there has ended, the stream has done this many
  /// rows (0: none).
  llvm::SmallVector<unsigned, 2> last;
  /// In the same order: this many rows are known to have ended before any access to the buffer starts.
  llvm::SmallVector<unsigned, 2> known;
  int64_t offset = 0; // result
};

/// Whether every access of `a` has ended before any of `b` starts, at each position that has both.
bool endsBefore(const ArenaBuffer &a, const ArenaBuffer &b);

/// So many pairs of buffers in use at once are kept, which takes 8 bytes for each, where that is less work than to go
/// through all buffers of a class for each: more than 32 micro-batches of Llama 3 70B have.
inline constexpr int64_t kMostMeetings = 256'000'000;

/// Sets offsets, multiples of `alignment`, in each class from its base on. Returns the end of the arena, a multiple of
/// `alignment`.
/// `mostMeetings` decides what is kept in memory, not what the offsets are.
int64_t assignArena(llvm::MutableArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<int64_t> bases, int64_t alignment,
                    int64_t mostMeetings = kMostMeetings);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ARENA_H
