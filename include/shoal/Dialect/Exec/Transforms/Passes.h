// Passes from L2 to the rank program. See Passes.td.
#ifndef SHOAL_DIALECT_EXEC_TRANSFORMS_PASSES_H
#define SHOAL_DIALECT_EXEC_TRANSFORMS_PASSES_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shoal::exec {

#define GEN_PASS_DECL
#include "shoal/passes/ShoalExec.h.inc"

#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalExec.h.inc"

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_TRANSFORMS_PASSES_H
