// How the bundles of a step are cut into buckets: ranges of the elements of all their tensors, one after another.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETPLAN_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETPLAN_H

#include "Bundles.h"
#include "FlatBuckets.h"

namespace shoal::dist {

struct BundleBuckets;

struct Bucket {
  /// Elements [begin, end) of a chain's tensor.
  struct Part {
    UpdateChain *chain;
    int64_t begin, end;
  };
  llvm::SmallVector<Part> parts;
  BundleBuckets *bundle;
  std::string name;
  int64_t begin = 0, end = 0; // of all elements of the bundle
  int64_t size = 0;           // with padding
  /// Which storage its gradient is packed into, and where.
  int64_t group = 0, at = 0;
  mlir::Value gradient; // reduced, a shard

  const UpdateChain &front() const { return *parts.front().chain; }
  llvm::SmallVector<llvm::StringRef> names() const {
    return llvm::map_to_vector(parts, [](const Part &part) { return part.chain->name; });
  }
};

struct BundleBuckets {
  llvm::MutableArrayRef<UpdateChain> chains;
  std::vector<Bucket> buckets;

  const UpdateChain &front() const { return chains.front(); }
  bool reducesInside() const;
  int64_t size() const { return buckets.back().begin + buckets.back().size; } // with padding
};

class BucketPlan {
public:
  BucketPlan(mlir::func::FuncOp func, const BucketOptions &options, std::vector<Bundle> &bundles);

  /// In the order in which their gradients are whole: what is whole first is reduced and updated first.
  llvm::ArrayRef<Bucket *> getBuckets() const { return order; }
  std::vector<BundleBuckets> &getBundles() { return bundles; }
  /// A group of `dist.pack` that neither the function nor the plan has.
  int64_t takeGroup() { return freeGroup++; }

private:
  void cut(BundleBuckets &bundle, const BucketOptions &options);
  void name(mlir::func::FuncOp func);
  void placeGradients();

  std::vector<BundleBuckets> bundles;
  llvm::SmallVector<Bucket *> order;
  int64_t freeGroup = 0;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETPLAN_H
