// Mathematical functions as arithmetic: PTX has none in double precision, and CUDA's libdevice,
// which has, comes only with the toolkit.
#ifndef SHOAL_LIB_CODEGEN_CUDA_EXPANDMATH_H
#define SHOAL_LIB_CODEGEN_CUDA_EXPANDMATH_H

#include "mlir/IR/Operation.h"

namespace shoal::codegen {

/// Expands the math ops under `root` that PTX has no instruction for; diagnoses what it cannot.
mlir::LogicalResult expandMathForGPU(mlir::Operation *root);

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_CUDA_EXPANDMATH_H
