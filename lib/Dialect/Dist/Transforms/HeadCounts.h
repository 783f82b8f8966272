// How an axis of devices is dealt out to the heads of attention: key/value heads, and the query heads of one.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_HEADCOUNTS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_HEADCOUNTS_H

#include "SequenceDims.h"

namespace shoal::dist {

/// The factors of heads: what the op computes independently behind the tokens, key/value heads and then the query heads
/// of one.
llvm::SmallVector<unsigned> findHeadFactors(const DimGroups::Entry &entry);

/// Of one op, on a device.
struct HeadCounts {
  int64_t keyValue, query; // these for each of those

  /// By what shards them so far.
  static HeadCounts of(const DimGroups::Entry &entry, const GroupAxes &known, MeshAttr mesh);

  /// Which axes of these sizes key/value heads take: all where there are as many, else what divides them. None where
  /// query heads are too few for the rest.
  std::optional<llvm::SmallVector<bool>> deal(llvm::ArrayRef<int64_t> sizes) const;
};

/// Of all ops that have heads.
llvm::SmallVector<HeadCounts> countHeads(const DimGroups &groups, const GroupAxes &known, MeshAttr mesh);

/// The parts into which an axis is split so that key/value heads fewer than its devices take some of them, of each op the
/// greatest product that divides its own.
llvm::SmallVector<int64_t> splitForHeads(int64_t devices, llvm::ArrayRef<HeadCounts> heads);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_HEADCOUNTS_H
