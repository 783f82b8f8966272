// Runs GPU kernels without a GPU: their LLVM IR is retargeted to this machine, threads of a block
// are threads of the system that meet at barriers, and blocks run one after the other.
#ifndef SHOAL_UNITTESTS_CODEGEN_EMULATEDGPU_H
#define SHOAL_UNITTESTS_CODEGEN_EMULATEDGPU_H

#include "shoal-rt/program.h"
#include "shoal/Codegen/Host.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal::test {

/// Machine code of the kernels' optimized LLVM IR, of which PTX would be printed, each behind an
/// entry that takes a table of buffers, as those of the CPU do.
mlir::FailureOr<codegen::KernelObjects> compileForEmulatedGPU(mlir::ModuleOp module);

/// Launches such an entry.
void launchEmulated(shoal_rt_kernel kernel, void *const *buffers, unsigned blocks,
                    unsigned threadsPerBlock);

} // namespace shoal::test

#endif // SHOAL_UNITTESTS_CODEGEN_EMULATEDGPU_H
