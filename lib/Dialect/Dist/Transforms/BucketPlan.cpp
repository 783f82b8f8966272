// Cuts bundles into buckets; see BucketPlan.h.
#include "BucketPlan.h"

#include "BucketCut.h"

#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Support/Elements.h"

#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;

namespace shoal::dist {

bool BundleBuckets::reducesInside() const {
  FlatAttr flat = front().flatGradient;
  return flat && flat.getPerUse() && front().gradient.getDefiningOp<AccumulateOp>();
}

BucketPlan::BucketPlan(func::FuncOp func, const BucketOptions &options, std::vector<Bundle> &all) {
  bundles.reserve(all.size()); // buckets point to theirs
  for (Bundle &bundle : all) {
    bundles.push_back({bundle, {}});
    cut(bundles.back(), options);
    for (Bucket &bucket : bundles.back().buckets)
      order.push_back(&bucket);
  }
  llvm::stable_sort(order, [](const Bucket *a, const Bucket *b) {
    return isReadyBefore(*a->parts.back().chain, *b->parts.back().chain);
  });
  name(func);
  freeGroup = findFreeGroup(func);
  placeGradients();
}

void BucketPlan::cut(BundleBuckets &bundle, const BucketOptions &options) {
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(bundle.chains, [](const UpdateChain &chain) { return chain.size(); });
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  MeshAttr mesh = MeshOp(options.mesh).getMesh();
  int64_t devices = mesh.getSize(bundle.front().getFlatAxes());
  // Only behind the last tensor is padding, so that a tensor is contiguous where its buckets are neighbours.
  BucketCut cut(total, elementBytes(getElementTypeOrSelf(bundle.front().gradient.getType())), options.bytes, devices,
                /*grain=*/devices);
  bundle.buckets.resize(cut.count);
  for (auto [i, bucket, parts] : llvm::enumerate(bundle.buckets, cut.cutTensors(sizes))) {
    bucket.bundle = &bundle;
    bucket.begin = cut.begin(i);
    bucket.end = cut.end(i);
    bucket.size = shardSize(bucket.end - bucket.begin, devices) * devices;
    for (BucketCut::Part part : parts)
      bucket.parts.push_back({&bundle.chains[part.tensor], part.begin, part.end});
  }
}

void BucketPlan::name(func::FuncOp func) {
  llvm::StringSet<> taken; // with what stands before each dot
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    StringRef name = nn::getArgName(func, i);
    taken.insert(name);
    for (size_t dot = name.find('.'); dot != StringRef::npos; dot = name.find('.', dot + 1))
      taken.insert(name.take_front(dot));
  }
  int64_t number = 0;
  for (Bucket *bucket : order)
    do
      bucket->name = "bucket." + std::to_string(number++);
    while (taken.contains(bucket->name));
}

/// The tensor of which more than half of the bucket is; null where there is none.
static const UpdateChain *findMost(const Bucket &bucket) {
  for (const Bucket::Part &part : bucket.parts)
    if (2 * (part.end - part.begin) > bucket.end - bucket.begin)
      return part.chain;
  return nullptr;
}

/// Gradients that are sums over micro-batches are there from the first one to the last reduction: they lie in one
/// storage, where no tensor need be copied into its buckets. Others are gone as soon as they are reduced, so each
/// bucket has storage of its own, but for those that hold little but one tensor, which is there at once: of a tensor
/// that is cut, the smaller part of one bucket is copied.
void BucketPlan::placeGradients() {
  for (BundleBuckets &bundle : bundles) {
    bool isSum = bundle.front().gradient.getDefiningOp<AccumulateOp>() && !bundle.reducesInside();
    int64_t group = 0, begin = 0;
    const Bucket *before = nullptr;
    for (Bucket &bucket : bundle.buckets) {
      bool isOfOneTensor = before && findMost(bucket) && findMost(*before) == findMost(bucket);
      if (!before || !(isSum || isOfOneTensor)) {
        group = takeGroup();
        begin = bucket.begin;
      }
      bucket.group = group;
      bucket.at = bucket.begin - begin;
      before = &bucket;
    }
  }
}

} // namespace shoal::dist
