// The lowering interface, and what passes ask of an op by it; see LoweringOpInterface.td.
#ifndef SHOAL_INTERFACES_LOWERING_H
#define SHOAL_INTERFACES_LOWERING_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace shoal {

namespace exec {
class RowContext;
} // namespace exec

/// What becomes of an op.
enum class LoweringKind {
  /// A part of a kernel, alone or fused with others.
  Kernel,
  /// Rows of its own in the rank program: a call of a library.
  Library,
  /// Nothing: its result is operand 0's buffer in another shape.
  View,
  /// A value that every kernel that uses it holds itself.
  Constant,
};

} // namespace shoal

#include "shoal/Dialect/Interfaces/LoweringOpInterface.h.inc"

namespace shoal {

/// Whether the op lowers as `kind` says; false for ops that have no lowering.
bool lowersAs(mlir::Operation *op, LoweringKind kind);

/// The value that a chain of views starts from.
mlir::Value stripViews(mlir::Value value);

} // namespace shoal

#endif // SHOAL_INTERFACES_LOWERING_H
