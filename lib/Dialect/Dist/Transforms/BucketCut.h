// Where the flat sequence of a group of tensors is cut into buckets of nearly equal size, and the storage they share.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETCUT_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETCUT_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include <algorithm>
#include <vector>

namespace shoal::dist {

/// Bucket `index` of `count` holds elements [begin, end). There are ceil(bytes / bucketBytes) of them, each of at least
/// `grain` elements. Boundaries are multiples of `grain` and, where that leaves no bucket empty, of 64 bytes times the
/// devices, so that chunks need no padding.
struct BucketCut {
  int64_t total, grain, count, step;

  BucketCut(int64_t total, int64_t elementBytes, int64_t bucketBytes, int64_t devices, int64_t grain)
      : total(total), grain(grain),
        count(std::min(shardSize(total * elementBytes, bucketBytes), std::max<int64_t>(total / grain, 1))) {
    int64_t equal = shardSize(total, count);
    for (int64_t unit : {devices * std::max<int64_t>(1, 64 / elementBytes), grain})
      if (step = shardSize(equal, unit) * unit; (count - 1) * step < total)
        return;
    step = 0;
  }
  int64_t begin(int64_t index) const {
    // An uneven cut would leave the last buckets empty: spread the elements instead.
    return index == count ? total : step != 0 ? index * step : index * total / count / grain * grain;
  }
  int64_t end(int64_t index) const { return begin(index + 1); }

  /// Elements [begin, end) of a tensor.
  struct Part {
    unsigned tensor;
    int64_t begin, end;
  };
  /// What each bucket holds of tensors that are `total` elements together, one after another.
  std::vector<llvm::SmallVector<Part>> cutTensors(llvm::ArrayRef<int64_t> sizes) const {
    std::vector<llvm::SmallVector<Part>> buckets(count);
    unsigned tensor = 0;
    int64_t first = 0; // element at which it begins
    for (int64_t bucket = 0, at = 0; bucket < count; ++bucket)
      while (at < end(bucket)) {
        int64_t last = first + sizes[tensor], stop = std::min(end(bucket), last);
        if (at < stop)
          buckets[bucket].push_back({tensor, at - first, stop - first});
        at = stop;
        if (at == last) {
          first = last;
          ++tensor;
        }
      }
    return buckets;
  }
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUCKETCUT_H
