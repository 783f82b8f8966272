// The last two steps of lowering, on a program whose rows stand: streams wait for each other,
// buffers get offsets.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace shoal::exec {

/// What memory asks of the order of streams.
struct PacedRows {
  /// Wait for what stream 0 does before them, so that what they fetch takes no memory earlier; permutations in flight, too.
  llvm::DenseSet<mlir::Operation *> fetches;
  /// Of buckets. What they have read is held until stream 0 knows that they have ended.
  llvm::DenseSet<mlir::Operation *> reductions;
  llvm::DenseMap<mlir::Operation *, int64_t> microbatches; ///< of rows that are part of one
  /// On streams of their own (`dist.async`).
  llvm::DenseSet<mlir::Operation *> messages;
};

/// Adds the tokens and waits that order rows of different streams which touch the same bytes of a buffer, those that
/// pace rows, and what makes stream 0 wait for all others at the end. Where more would be in use than at the fullest
/// row, stream 0 waits for reductions; but the latest may run until the next starts or another micro-batch needs the
/// memory. Messages on streams of their own are one ahead of stream 0.
void insertWaits(ProgramOp program, const PacedRows &paced);

/// Gives every argument and buffer its offset; sets the sizes of the program's arenas, and bytes by class.
void assignOffsets(ProgramOp program);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H
