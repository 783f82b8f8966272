// Passes of the reference interpreter; see Passes.td.
#ifndef SHOAL_INTERPRETER_PASSES_H
#define SHOAL_INTERPRETER_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shoal::interp {
#define GEN_PASS_DECL
#include "shoal/passes/ShoalInterpreter.h.inc"
#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalInterpreter.h.inc"
} // namespace shoal::interp

#endif // SHOAL_INTERPRETER_PASSES_H
