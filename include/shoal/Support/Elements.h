// Element types: their size in memory, whole bytes, so that an i1 takes one, and the type they are
// computed in.
#ifndef SHOAL_SUPPORT_ELEMENTS_H
#define SHOAL_SUPPORT_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace shoal {

/// 8 for a type without a width of its own, such as index.
inline int64_t elementBytes(mlir::Type type) {
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8) : 8;
}

/// f32 for bf16, which is storage; else the type itself.
inline mlir::Type computeType(mlir::Type element) {
  return element.isBF16() ? mlir::Float32Type::get(element.getContext()) : element;
}

} // namespace shoal

#endif // SHOAL_SUPPORT_ELEMENTS_H
