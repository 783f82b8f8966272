// Where a step reads parameters that lie in buckets, and when those that are sharded are put together for it.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARAMETERREADS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARAMETERREADS_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

/// Buckets that hold some tensors of the step one after another, each of those in one bucket or in several.
struct BucketRead {
  struct Bucket {
    /// An argument, or what is made of one; null where the step reads nothing of it.
    mlir::Value value;
    /// Which of all their elements is the first in the bucket.
    int64_t begin;
  };
  /// One where every device has it whole.
  llvm::SmallVector<Bucket> buckets;
  /// Null where every device has it whole.
  FlatAttr flat;
  struct Member {
    mlir::StringAttr name;
    /// The parameter itself, whose readers read the bucket afterwards.
    mlir::Value value;
    int64_t begin, end;
  };
  llvm::SmallVector<Member> members;
};

/// The casts through which alone a step reads a parameter, all to one type; empty where it is read otherwise, too. Its
/// update does not count.
llvm::SmallVector<mlir::Operation *> findCasts(mlir::BlockArgument param, mlir::Operation *update = nullptr);
/// What one cast of the bucket stands for.
mlir::Value castBucket(mlir::Operation *cast, mlir::Value bucket, ShardingAttr sharding);

/// What is computed of one of these parameters alone (another shape, a part) is computed for each reader, so that it is
/// not kept in the parameter's stead. Of those that `dist.flat` gathers for each use.
void repeatDerived(mlir::func::FuncOp func);

/// Gives the readers of members what they read out of the buckets. A sharded bucket is gathered once, at the start, or where
/// it is `per_use` once for each cluster of readers: neighbours of one layer and one part of the step, so that nothing is
/// kept from forward to backward, or from a table's first use to its last. With `overlap` such a gather starts while
/// the layer before is computed, else right before its first reader.
void readFromBuckets(mlir::func::FuncOp func, MeshOp mesh, llvm::ArrayRef<BucketRead> reads, const StepParts &parts,
                     bool overlap);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARAMETERREADS_H
