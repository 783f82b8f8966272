// The CPU target: kernels to machine code, code and program blob to a payload, payload to an
// executable. Everything happens in this process; no compiler or linker is called.
#ifndef SHOAL_CODEGEN_HOST_H
#define SHOAL_CODEGEN_HOST_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace shoal::codegen {

/// The processor to generate code for. An empty `cpu` or "native" is the machine the compiler runs
/// on, with the features it really has; else an LLVM name such as "x86-64-v3" or "znver4".
struct HostTarget {
  std::string cpu;
  std::string features; // LLVM's "+avx2,-avx512f", added to those of the cpu
};

/// Machine code of kernels: relocatable objects and the C entry points they define.
struct KernelObjects {
  std::vector<std::string> objects;
  std::vector<std::string> kernels; // symbols, in the order of the functions in the module
};

/// The passes from nn bodies to the LLVM dialect, on a module of kernels.
void buildHostKernelPipeline(mlir::OpPassManager &pm);

/// Compiles every function of `module` marked `exec.kernel` (nn bodies, tensors). The module is
/// left as it was.
mlir::FailureOr<KernelObjects> compileKernels(mlir::ModuleOp module, const HostTarget &target = {});

/// The optimized LLVM IR of the same kernels, as text (`--emit llvm`).
mlir::FailureOr<std::string> emitKernelsLLVM(mlir::ModuleOp module, const HostTarget &target = {});

/// Links objects and blob into a shared object that exports `shoal_program` (the blob) and
/// `shoal_kernels`: a table of the entry points named in `table`, whose order is the blob's. With an
/// `evaluation` blob, which numbers the same table, also `shoal_evaluation`.
/// Undefined symbols (libm, libmvec, memset) are those of the runtime executable.
mlir::FailureOr<std::string> linkPayload(const KernelObjects &code,
                                         mlir::ArrayRef<std::string> table,
                                         mlir::ArrayRef<unsigned char> blob,
                                         mlir::function_ref<mlir::InFlightDiagnostic()> emitError,
                                         mlir::ArrayRef<unsigned char> evaluation = {});

/// Writes a copy of the runtime executable with the payload and its footer at the end
/// (shoal-rt/payload.h), by rename, so that no half-written file is ever seen under `outputPath`.
mlir::LogicalResult writeExecutable(llvm::StringRef runtimePath, llvm::StringRef payload,
                                    llvm::StringRef outputPath,
                                    mlir::function_ref<mlir::InFlightDiagnostic()> emitError);

} // namespace shoal::codegen

#endif // SHOAL_CODEGEN_HOST_H
