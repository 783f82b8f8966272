// Deals axes out to the heads of attention; see HeadCounts.h.
#include "HeadCounts.h"

#include <numeric>

using namespace mlir;

namespace shoal::dist {

SmallVector<unsigned> findHeadFactors(const DimGroups::Entry &entry) {
  unsigned tokens = entry.rule.aligned.front().lead;
  SmallVector<unsigned> heads;
  for (const TensorFactors &tensor : entry.rule.operands) {
    std::optional<unsigned> dim = findDim(tensor, tokens);
    for (unsigned d = dim ? *dim + 1 : tensor.size(); d < tensor.size(); ++d)
      if (unsigned factor = tensor[d].front();
          entry.rule.factors[factor].kind != FactorKind::NeedReplication && !llvm::is_contained(heads, factor))
        heads.push_back(factor);
  }
  return heads;
}

HeadCounts HeadCounts::of(const DimGroups::Entry &entry, const GroupAxes &known, MeshAttr mesh) {
  auto countLocal = [&](unsigned factor) {
    return shardSize(entry.rule.factors[factor].size, mesh.getSize(known.get(entry.groups[factor])));
  };
  SmallVector<unsigned> factors = findHeadFactors(entry);
  return {countLocal(factors.front()), countLocal(factors.back())};
}

SmallVector<HeadCounts> countHeads(const DimGroups &groups, const GroupAxes &known, MeshAttr mesh) {
  SmallVector<HeadCounts> all;
  for (const DimGroups::Entry &entry : groups.getEntries())
    if (!entry.rule.aligned.empty())
      all.push_back(HeadCounts::of(entry, known, mesh));
  return all;
}

std::optional<SmallVector<bool>> HeadCounts::deal(ArrayRef<int64_t> sizes) const {
  int64_t devices = std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  SmallVector<bool> dealt;
  int64_t shared = 1;
  for (int64_t size : sizes) {
    dealt.push_back(keyValue >= devices || keyValue % (shared * size) == 0);
    shared *= dealt.back() ? size : 1;
  }
  return devices / shared <= query ? std::optional(dealt) : std::nullopt;
}

/// So that some of the sizes have the greatest product that divides `heads`.
static SmallVector<int64_t> splitBy(ArrayRef<int64_t> sizes, int64_t heads) {
  SmallVector<int64_t> split;
  for (int64_t size : sizes) {
    int64_t part = std::gcd(size, heads);
    heads /= part;
    split.append({part, size / part});
  }
  llvm::erase(split, 1);
  return split;
}

SmallVector<int64_t> splitForHeads(int64_t devices, ArrayRef<HeadCounts> heads) {
  SmallVector<int64_t> sizes{devices};
  for (const HeadCounts &counts : heads)
    if (counts.keyValue < devices)
      sizes = splitBy(sizes, counts.keyValue);
  llvm::erase(sizes, 1);
  return sizes;
}

} // namespace shoal::dist
