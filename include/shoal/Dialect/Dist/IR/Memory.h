// The memory space of a value that lives from step to step: its device's memory, or that of the device's host, which is
// larger and slower to reach (pinned memory; ZeRO-Offload, Ren et al. 2021).
#ifndef SHOAL_DIALECT_DIST_IR_MEMORY_H
#define SHOAL_DIALECT_DIST_IR_MEMORY_H

#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal::dist {

/// On an argument of L1 or L2: "host". Without it, it lies in the device's memory.
inline constexpr llvm::StringLiteral kMemoryAttr = "dist.memory";
inline constexpr llvm::StringLiteral kHostMemory = "host";

/// What only the optimizer touches: its state, and masters, of which the step uses copies.
inline bool isOfOptimizer(mlir::FunctionOpInterface func, unsigned argument) {
  return nn::getArgRole(func, argument) == nn::ArgRole::State ||
         func.getArgAttr(argument, nn::NNDialect::kMasterAttr);
}

inline bool liesOnHost(mlir::FunctionOpInterface func, unsigned argument) {
  return bool(func.getArgAttr(argument, kMemoryAttr));
}

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_MEMORY_H
