// Passes from outlined kernels to the LLVM dialect; see Passes.td.
#ifndef SHOAL_CODEGEN_PASSES_H
#define SHOAL_CODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace shoal::codegen {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalCodegen.h.inc"

} // namespace shoal::codegen

#endif // SHOAL_CODEGEN_PASSES_H
