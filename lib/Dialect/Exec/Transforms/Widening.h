// A cast to a wider float type costs nothing where it is read: who reads it makes it anew, so that what is kept, or copied
// to another memory, is the narrow value.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_WIDENING_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_WIDENING_H

#include "shoal/Dialect/NN/IR/NN.h"

namespace shoal::exec {

inline bool isWidening(mlir::Operation *op) {
  auto cast = mlir::dyn_cast_or_null<nn::CastOp>(op);
  if (!cast)
    return false;
  auto from = mlir::dyn_cast<mlir::FloatType>(cast.getInput().getType().getElementType());
  auto to = mlir::dyn_cast<mlir::FloatType>(cast.getType().getElementType());
  return from && to && from.getWidth() < to.getWidth();
}

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_WIDENING_H
