// The reference-semantics interface; see ReferenceOpInterface.td.
#ifndef SHOAL_INTERFACES_REFERENCE_H
#define SHOAL_INTERFACES_REFERENCE_H

#include "shoal/Interpreter/Tensor.h"

#include "mlir/IR/OpDefinition.h"

#include <vector>

#include "shoal/Dialect/Interfaces/ReferenceOpInterface.h.inc"

#endif // SHOAL_INTERFACES_REFERENCE_H
