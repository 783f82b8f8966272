// LLVM for the host: the target machine, its -O3 pipeline and object emission.
#ifndef SHOAL_LIB_CODEGEN_HOST_HOSTMACHINE_H
#define SHOAL_LIB_CODEGEN_HOST_HOSTMACHINE_H

#include "shoal/Codegen/Host.h"

#include <memory>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace shoal::codegen {

llvm::FailureOr<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(const HostTarget &target,
                  llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
void optimizeForHost(llvm::Module &module, llvm::TargetMachine &machine);
std::string emitHostObject(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_HOST_HOSTMACHINE_H
