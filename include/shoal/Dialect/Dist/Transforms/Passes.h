// Passes of the dist dialect: annotation, propagation, partitioning, collectives. See Passes.td.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_PASSES_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shoal::dist {

#define GEN_PASS_DECL
#include "shoal/passes/ShoalDist.h.inc"

#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalDist.h.inc"

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_PASSES_H
