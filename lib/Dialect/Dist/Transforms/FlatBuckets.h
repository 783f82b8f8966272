// What `dist.flat` wants sharded by element becomes buckets: arguments and results that hold ranges of several tensors,
// and ops on them. The partitioner then sees one dimension that always divides.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FLATBUCKETS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FLATBUCKETS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

struct BucketOptions {
  MeshOp mesh;
  /// Axes of this run. What lies flat over others is left to their run; what does over both is diagnosed.
  llvm::ArrayRef<mlir::StringAttr> axes;
  /// Axes that gradients have been reduced over, each alone, by a run that leaves it to this one to do so jointly.
  llvm::ArrayRef<mlir::StringAttr> joint;
  /// Of a bucket's gradient, in the type in which it is reduced.
  int64_t bytes;
  /// Start gathers ahead of their readers.
  bool overlap;
};

/// Calls `visit` for each argument and gradient that is `dist.flat`, with its place and how messages call it, until one
/// fails.
llvm::LogicalResult
visitFlat(mlir::func::FuncOp func,
          llvm::function_ref<llvm::LogicalResult(mlir::Location, llvm::StringRef name, FlatAttr)> visit);

/// Of a training step: parameters, gradients and state, and their updates.
llvm::LogicalResult packFlat(mlir::func::FuncOp func, const BucketOptions &options);

/// Of an evaluation: parameters as `dist.buckets` says that its training step has them.
llvm::LogicalResult packAsTraining(mlir::func::FuncOp func, const BucketOptions &options);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FLATBUCKETS_H
