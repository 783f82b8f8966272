// The kernel-body interface; see LinalgLowerableOpInterface.td.
#ifndef SHOAL_INTERFACES_LINALGLOWERABLE_H
#define SHOAL_INTERFACES_LINALGLOWERABLE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "shoal/Dialect/Interfaces/LinalgLowerableOpInterface.h.inc"

#endif // SHOAL_INTERFACES_LINALGLOWERABLE_H
