// Which integers an input may hold: those that every op that takes them as indices has a row or a class
// for. The interpreter draws inputs by it; `nn-bound-indices` writes it on the inputs, and the runtime refuses
// data that lie outside.
#ifndef SHOAL_DIALECT_NN_IR_INDEXRANGE_H
#define SHOAL_DIALECT_NN_IR_INDEXRANGE_H

#include "mlir/IR/Value.h"

#include <cstdint>
#include <optional>

namespace shoal::nn {

/// Indices in [0, size), and one number that stands for none (the target that is ignored).
struct IndexRange {
  int64_t size;
  std::optional<int64_t> ignored = std::nullopt;
};

/// What both allow.
IndexRange intersect(const IndexRange &a, const IndexRange &b);

/// Which of a value's elements an op must use as indices for its range to count.
enum class IndexUse {
  /// Every element: then any other number is wrong, whatever the program does besides.
  All,
  /// Some: enough to know what numbers make sense.
  Some,
};

/// The range that all ops agree on which use the value's elements as indices (IndexOperandOpInterface),
/// behind ops that only move elements. `enter` gives the value that an operand is inside a region,
/// null where there is none. Of floats it is that of the distributions that they hold.
std::optional<IndexRange>
findIndexRange(mlir::Value value, IndexUse use,
               llvm::function_ref<mlir::Value(mlir::OpOperand &)> enter);

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_INDEXRANGE_H
