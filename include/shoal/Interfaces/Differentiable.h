// The gradient interface; see DifferentiableOpInterface.td.
#ifndef SHOAL_INTERFACES_DIFFERENTIABLE_H
#define SHOAL_INTERFACES_DIFFERENTIABLE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/BitVector.h"

#include "shoal/Dialect/Interfaces/DifferentiableOpInterface.h.inc"

#endif // SHOAL_INTERFACES_DIFFERENTIABLE_H
