// What of the arena is in use at each row of a rank program. The bytes that a program promises are the maxima of
// this curve, and reports draw it.
#ifndef SHOAL_DIALECT_EXEC_IR_ARENAUSE_H
#define SHOAL_DIALECT_EXEC_IR_ARENAUSE_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "llvm/ADT/MapVector.h"

#include <array>

namespace shoal::exec {

/// From the first row that touches a buffer to the last, counted in program order; both -1 when none does.
struct RowSpan {
  int64_t first = -1, last = -1;
};

/// One row's share of the arena. Arguments are in use at every row, a buffer over its span.
struct ArenaUse {
  std::array<int64_t, getMaxEnumValForStorageClass() + 1> bytes{}; ///< by class, without what aligns them
  int64_t end = 0; ///< behind the last buffer in use, aligned: the arena that this row needs

  int64_t get(StorageClass storageClass) const { return bytes[unsigned(storageClass)]; }
};

/// The buffers in program order.
llvm::MapVector<BufferOp, RowSpan> findSpans(ProgramOp program);

/// One entry per row, at least one. `end` follows the offsets that are set.
llvm::SmallVector<ArenaUse> measureArena(ProgramOp program);

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_ARENAUSE_H
