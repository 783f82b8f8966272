// Element types: their size in memory, whole bytes, so that an i1 takes one, and the type they are
// computed in. And how many elements a tensor may have.
#ifndef SHOAL_SUPPORT_ELEMENTS_H
#define SHOAL_SUPPORT_ELEMENTS_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

namespace shoal {

/// 8 for a type without a width of its own, such as index.
inline int64_t elementBytes(mlir::Type type) {
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8) : 8;
}

/// Of a tensor of static shape; 0 of any other type.
inline int64_t tensorBytes(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() ? tensor.getNumElements() * elementBytes(tensor.getElementType()) : 0;
}

/// f32 for bf16, which is storage; else the type itself.
inline mlir::Type computeType(mlir::Type element) {
  return element.isBF16() ? mlir::Float32Type::get(element.getContext()) : element;
}

/// The most elements of a tensor, so that the bytes of a whole program fit 64 bits.
inline constexpr int64_t kMostElements = int64_t(1) << 40;

/// Whether a tensor of static shape has from 1 to kMostElements.
inline bool isCountable(mlir::RankedTensorType type) {
  int64_t elements = 1;
  for (int64_t size : type.getShape()) {
    if (size < 1 || size > kMostElements / elements)
      return false;
    elements *= size;
  }
  return true;
}

} // namespace shoal

#endif // SHOAL_SUPPORT_ELEMENTS_H
