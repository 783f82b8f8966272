// Passes on schedules. See Passes.td.
#ifndef SHOAL_DIALECT_PIPE_TRANSFORMS_PASSES_H
#define SHOAL_DIALECT_PIPE_TRANSFORMS_PASSES_H

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shoal::pipe {

#define GEN_PASS_DECL
#include "shoal/passes/ShoalPipe.h.inc"

#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalPipe.h.inc"

} // namespace shoal::pipe

#endif // SHOAL_DIALECT_PIPE_TRANSFORMS_PASSES_H
