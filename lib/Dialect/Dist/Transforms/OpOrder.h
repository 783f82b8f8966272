// Where the ops of a block stand, kept beside it while ops are put behind others: a block that is asked after each of
// them would number all its ops anew each time.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_OPORDER_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_OPORDER_H

#include "mlir/IR/Operation.h"

namespace shoal::dist {

class OpOrder {
public:
  /// `op` stands behind all that were appended before.
  void append(mlir::Operation *op) {
    places[op] = {static_cast<int64_t>(tails.size()) + 1, 0};
    tails.append({nullptr, op});
  }

  bool isBefore(mlir::Operation *a, mlir::Operation *b) const { return get(a) < get(b); }

  /// Of two ops the one that stands behind the other; null where both are null or were never put in order: these stand
  /// in front of all.
  mlir::Operation *getLater(mlir::Operation *a, mlir::Operation *b) const {
    mlir::Operation *later = isBefore(a, b) ? b : a;
    return places.contains(later) ? later : nullptr;
  }

  /// Behind which op comes what is put behind `other`: all that was put there comes in the order in which it was. Null:
  /// in front of all that were appended.
  mlir::Operation *getTail(mlir::Operation *other) const { return tails[get(other).first]; }

  /// `op` stands behind the tail of `other`, wherever it stood.
  void putBehind(mlir::Operation *op, mlir::Operation *other) { put(op, get(other).first); }
  /// `op` stands in front of `other`, which was appended, behind all that are put behind the one before.
  void putInFront(mlir::Operation *op, mlir::Operation *other) { put(op, get(other).first - 1); }

private:
  /// A group, and how many were put into any before. 0 is the group in front of all; each op that was appended has one
  /// in front of it and one that begins with it.
  using Place = std::pair<int64_t, int64_t>;

  void put(mlir::Operation *op, int64_t group) {
    places[op] = {group, ++count};
    tails[group] = op;
  }

  Place get(mlir::Operation *op) const { return places.lookup(op); }

  llvm::DenseMap<mlir::Operation *, Place> places;
  llvm::SmallVector<mlir::Operation *> tails{nullptr};
  int64_t count = 0;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_OPORDER_H
