// The GPU target, as far as PTX: kernels from the same outlined functions and the same plans as on
// the CPU, as entry points that any launch of at most 256 threads per block runs rightly.
#ifndef SHOAL_CODEGEN_CUDA_H
#define SHOAL_CODEGEN_CUDA_H

#include "mlir/Support/LLVM.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace shoal::codegen {

/// The passes from nn bodies to the NVVM dialect, on a module of kernels.
void buildGPUKernelPipeline(mlir::OpPassManager &pm);

/// Whether LLVM's code generator knows a GPU architecture such as "sm_80".
bool isKnownGPU(llvm::StringRef arch);

/// Optimized LLVM IR for nvptx64 of every function of `module` marked `exec.kernel` (nn bodies,
/// tensors); `names` receives the entry points, in order. The module is left as it was.
mlir::FailureOr<std::unique_ptr<llvm::Module>>
compileGPUKernels(mlir::ModuleOp module, llvm::StringRef arch, llvm::LLVMContext &context,
                  std::vector<std::string> &names);

/// The same as PTX text (`--emit ptx`). Parameters of an entry are its
/// buffers in the order of the kernel ABI: operands, results that are not in place, workspace.
mlir::FailureOr<std::string> emitKernelsPTX(mlir::ModuleOp module, llvm::StringRef arch);

} // namespace shoal::codegen

#endif // SHOAL_CODEGEN_CUDA_H
