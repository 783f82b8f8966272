// What of a program is made of one tensor alone: another shape or order of it, a part, another type.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_DERIVATION_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_DERIVATION_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shoal::dist {

/// Remembers what it has found, so ops must stay as long as it lives.
class Derivation {
public:
  /// Whether a device has the same value in each step: it is made of constants and of the device's position alone.
  bool isFixed(mlir::Value value);
  /// Whether the op, which may communicate, makes what it makes of values of the tensor and of fixed ones alone, of at
  /// least one of the tensor's.
  bool derives(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> isOfTensor);

private:
  llvm::DenseMap<mlir::Value, bool> fixed;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_DERIVATION_H
