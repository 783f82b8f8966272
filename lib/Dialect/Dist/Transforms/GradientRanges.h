// Gradients as ranges of flat buckets that are reduced as one, and read from them: the all-reduces of data parallelism.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_GRADIENTRANGES_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_GRADIENTRANGES_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

/// Packs the gradients that are partial over `axes`, in buckets of at most `bucketBytes` and of nearly equal size. What a
/// later run packs too is left partial over `joint` axes.
void packGradientRanges(mlir::func::FuncOp func, MeshOp mesh, llvm::ArrayRef<mlir::StringAttr> axes,
                        llvm::ArrayRef<mlir::StringAttr> joint, int64_t bucketBytes);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_GRADIENTRANGES_H
