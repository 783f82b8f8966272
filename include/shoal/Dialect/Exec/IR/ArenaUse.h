// What of the arena is in use at each row that a rank runs of a program. The bytes that a program promises are the
// maxima of this curve, and reports draw it.
#ifndef SHOAL_DIALECT_EXEC_IR_ARENAUSE_H
#define SHOAL_DIALECT_EXEC_IR_ARENAUSE_H

#include "shoal/Dialect/Exec/IR/PositionClasses.h"

#include <array>

namespace shoal::exec {

/// From the first row that touches a buffer to the last, counted in the rows of a class of positions.
struct RowSpan {
  int64_t first = -1, last = -1;
};

/// One row's share of the arena. Arguments are in use at every row, a buffer over its span.
struct ArenaUse {
  std::array<int64_t, getMaxEnumValForStorageClass() + 1> bytes{}; ///< by class, without what aligns them
  int64_t end = 0; ///< behind the last buffer in use, aligned: the arena that this row needs

  int64_t get(StorageClass storageClass) const { return bytes[unsigned(storageClass)]; }
};

/// The buffers that the rows of some positions touch, in program order.
llvm::SmallVector<std::pair<BufferOp, RowSpan>> findSpans(const PositionClass &at);

/// At some positions, one entry per row there, at least one. `end` follows the offsets that are set.
llvm::SmallVector<ArenaUse> measureArena(const PositionClass &at);

/// The most that is in use at once at some positions, of each class by itself, and the largest `end`.
ArenaUse measureMost(const PositionClass &at);

/// The most bytes of each class that are in use at once, in the terms of reports.
BytesAttr getBytes(mlir::MLIRContext *context, const ArenaUse &most);

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_ARENAUSE_H
