// What makes streams wait although no bytes do: where rows that could start would hold memory that is needed.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PACING_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PACING_H

#include "Layout.h"

#include "shoal/Dialect/Exec/IR/PositionClasses.h"

#include <deque>
#include <optional>

namespace shoal::exec {

/// A row of some positions.
struct PlacedRow {
  RowOpInterface op;
  unsigned stream, index; ///< its number on its stream
};

/// Reductions that hold what nobody reads behind them, and what the other buffers leave for that.
class ReductionPacer {
public:
  ReductionPacer(const PositionClass &at, llvm::ArrayRef<PlacedRow> rows, const PacedRows &paced);

  /// Whether stream 0 must know, before a row, that the oldest reduction has ended.
  bool mustWait(unsigned row) const;
  unsigned getOldest() const { return running.front(); }
  void start(unsigned row);
  void end();
  bool empty() const { return running.empty(); }

private:
  llvm::SmallVector<int64_t> inUse, releases, microbatches; // by row: bytes, bytes that its end frees, the current one
  int64_t fullest = 0, held = 0;
  std::deque<unsigned> running;
};

/// Messages that no other message waits for: of each stream that carries them one is under way while stream 0 works on
/// the one before. What arrives takes memory only once what came before is being read, and what is sent gives its
/// memory to what is sent next.
class MessagePacer {
public:
  MessagePacer(llvm::ArrayRef<PlacedRow> rows, const PacedRows &paced, int64_t position, unsigned numStreams);

  /// The row of stream 0 that a receive waits for: the last before what came before it is read, or, of the first on its
  /// stream, the last before it (`computed`).
  std::optional<unsigned> getComputed(unsigned row, std::optional<unsigned> computed) const;
  /// The sends that a row waits for, since it writes what the same streams will send next.
  llvm::SmallVector<unsigned, 2> getSends(unsigned row) const;
  /// A row is issued; `computed` is the row of stream 0 before it.
  void start(unsigned row, std::optional<unsigned> computed);

private:
  llvm::ArrayRef<PlacedRow> rows;
  const PacedRows &paced;
  int64_t position;
  /// By row, the streams that send what it is first to write.
  llvm::DenseMap<unsigned, llvm::SmallVector<unsigned, 2>> sentBy;
  llvm::DenseMap<mlir::Operation *, unsigned> arrivedBy; // of a storage that nobody has read, the stream
  llvm::SmallVector<std::optional<unsigned>> lastSends;  // by stream
  /// By stream, the row of stream 0 before the latest that was first to read what arrived.
  llvm::DenseMap<unsigned, std::optional<unsigned>> beforeReading;
};

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PACING_H
