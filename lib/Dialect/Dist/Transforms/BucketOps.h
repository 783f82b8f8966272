// Ops on buckets in the place of those on their tensors, and how what they make lies.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETOPS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETOPS_H

#include "BucketPlan.h"

namespace shoal::dist {

class BucketOps {
public:
  BucketOps(mlir::func::FuncOp func, const BucketOptions &options)
      : func(func), options(options), symbol(mlir::FlatSymbolRefAttr::get(MeshOp(options.mesh).getSymNameAttr())) {}

  static mlir::RankedTensorType typeOf(const Bucket &bucket, mlir::Type like) {
    return mlir::RankedTensorType::get({bucket.size}, mlir::getElementTypeOrSelf(like));
  }
  /// Whole, or over flat axes.
  ShardingAttr lies(FlatAttr flat, int64_t rank = 1) const;
  ShardingAttr shard(const Bucket &bucket) const {
    return lies(FlatAttr::get(func->getContext(), bucket.front().getFlatAxes(), false));
  }

  /// The op with `values` instead of its `own` tensors, on all elements of the bucket.
  mlir::Operation *build(mlir::OpBuilder &b, mlir::Operation *op, llvm::ArrayRef<mlir::Value> own,
                         llvm::ArrayRef<mlir::Value> values, const Bucket &bucket, ShardingAttr sharding) const;

  /// What brought the flat axes to a bucket: recorded beside the annotation, which is one of `attrs`, else it is by
  /// hand.
  mlir::DictionaryAttr findWhy(const Bucket &bucket, FlatAttr flat, mlir::DictionaryAttr attrs) const;

protected:
  mlir::func::FuncOp func;
  const BucketOptions &options;
  mlir::FlatSymbolRefAttr symbol;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETOPS_H
