// Gradients of a step as buckets: packed, reduced to shards, inside of micro-batches or behind them, and summed up for
// the global norm.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETGRADIENTS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETGRADIENTS_H

#include "BucketOps.h"

namespace shoal::dist {

class BucketGradients : BucketOps {
public:
  using BucketOps::BucketOps;

  /// Gradients that outlive no micro-batch whole are reduced in it, and summed up as shards.
  void reduceInside(BucketPlan &plan);
  /// Any other. `why` is what brought the axes.
  void reduce(Bucket &bucket, mlir::DictionaryAttr why);

  /// One summand for each bucket in the place of one for each tensor. After all gradients of the bundle are reduced.
  void sumSquares(BundleBuckets &bundle);
  /// Sums of nothing but sums of shards stay sums of shards, so that all of them are reduced as one.
  void leavePartial();

private:
  mlir::Value pack(const Bucket &bucket, mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> gradients);
  mlir::Value reduce(const Bucket &bucket, mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> gradients,
                     mlir::DictionaryAttr why);
  mlir::Value mask(const UpdateChain &chain, mlir::Value gradient, mlir::OpBuilder &b);
  mlir::Value addSquares(const Bucket &bucket, mlir::OpBuilder &b);
  void forgetNumbers(mlir::Value summand);
  bool leavePartial(mlir::Value sum);

  llvm::DenseMap<const UpdateChain *, mlir::Value> masked;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> lastBehind; // reductions that wait for a gradient, in order
  llvm::SmallVector<mlir::Value> sums;                             // of the squares of each bundle
  /// Of those, of what they are sums of and of what they are added to: whether it is partial over flat axes.
  llvm::DenseMap<mlir::Value, bool> partialSums;
  llvm::DenseSet<mlir::Operation *> renumbered; // sums on the way to a total
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETGRADIENTS_H
