// How `nn` ops become kernel bodies, `linalg` on tensors, or rows of the rank program: one model of
// LoweringOpInterface per op.
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

/// Attaches LoweringOpInterface to every nn op.
void registerLoweringModels(mlir::DialectRegistry &registry);

/// Replaces the nn ops of a kernel by linalg on tensors (pass convert-nn-to-linalg).
mlir::LogicalResult convertKernelToLinalg(mlir::func::FuncOp kernel);

} // namespace shoal

#endif // SHOAL_CONVERSION_NNTOLINALG_H
