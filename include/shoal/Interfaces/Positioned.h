// The interface of ops that depend on where rows lie; see PositionedOpInterface.td.
#ifndef SHOAL_INTERFACES_POSITIONED_H
#define SHOAL_INTERFACES_POSITIONED_H

#include "mlir/IR/OpDefinition.h"

#include "shoal/Dialect/Interfaces/PositionedOpInterface.h.inc"

#endif // SHOAL_INTERFACES_POSITIONED_H
