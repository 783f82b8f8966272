// How `nn` ops become kernel bodies: `linalg` on tensors, one model per op. An op either has such
// a model or is a library call; there is no third kind.
#ifndef SHOAL_CONVERSION_NNTOLINALG_H
#define SHOAL_CONVERSION_NNTOLINALG_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class DialectRegistry;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace shoal {

/// Attaches LinalgLowerableOpInterface to every nn op that can be part of a kernel.
void registerLinalgLoweringModels(mlir::DialectRegistry &registry);

/// Replaces the nn ops of a kernel by linalg on tensors (pass convert-nn-to-linalg).
mlir::LogicalResult convertKernelToLinalg(mlir::func::FuncOp kernel);

} // namespace shoal

#endif // SHOAL_CONVERSION_NNTOLINALG_H
