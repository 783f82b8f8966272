// How an axis of devices is dealt out to the heads of attention: key/value heads, and the query heads of one.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_HEADCOUNTS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_HEADCOUNTS_H

#include "SequenceDims.h"

namespace shoal::dist {

/// The dimension that has the factor.
std::optional<unsigned> findDim(const TensorFactors &tensor, unsigned factor);

/// The factors of heads: what the op computes independently behind the tokens, key/value heads and then the query heads
/// of one.
llvm::SmallVector<unsigned> findHeadFactors(const DimGroups::Entry &entry);

/// Of one op, on a device.
struct HeadCounts {
  int64_t keyValue, query; // these for each of those

  /// By what shards them so far.
  static HeadCounts of(const DimGroups::Entry &entry, const GroupAxes &known, MeshAttr mesh);

  /// Which axes of these sizes key/value heads take: all where there are as many, else what divides them, from the
  /// first on as far as that goes; only where query heads are too few for the rest, what divides them behind it, too.
  std::optional<llvm::SmallVector<bool>> deal(llvm::ArrayRef<int64_t> sizes) const;
};

/// The parts into which an axis is split so that key/value heads fewer than its devices take some of them: what divides
/// those of all ops, or where that leaves query heads of some op too few, parts by which each op's own are divided.
llvm::SmallVector<int64_t> splitForHeads(int64_t devices, llvm::ArrayRef<HeadCounts> heads);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_HEADCOUNTS_H
