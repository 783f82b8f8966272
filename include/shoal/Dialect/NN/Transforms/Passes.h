// Passes on the model (L1), from what a user wrote to a training step with its optimizer.
#ifndef SHOAL_DIALECT_NN_TRANSFORMS_PASSES_H
#define SHOAL_DIALECT_NN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace shoal::nn {

#define GEN_PASS_DECL
#include "shoal/passes/ShoalNN.h.inc"
#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalNN.h.inc"

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_TRANSFORMS_PASSES_H
