// The size of an element in memory: whole bytes, so that an i1 takes one.
#ifndef SHOAL_SUPPORT_ELEMENTS_H
#define SHOAL_SUPPORT_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace shoal {

/// 8 for a type without a width of its own, such as index.
inline int64_t elementBytes(mlir::Type type) {
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8) : 8;
}

} // namespace shoal

#endif // SHOAL_SUPPORT_ELEMENTS_H
