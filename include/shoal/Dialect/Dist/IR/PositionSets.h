// Sets of mesh positions, each kept once, for who follows where each of a program's many values is.
#ifndef SHOAL_DIALECT_DIST_IR_POSITIONSETS_H
#define SHOAL_DIALECT_DIST_IR_POSITIONSETS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace shoal::dist {

/// Sets of positions by number: equal sets have equal numbers, and what was joined once is known.
class PositionSets {
public:
  using Id = unsigned;
  static constexpr Id kNone = 0, kAll = 1;

  explicit PositionSets(unsigned positions) {
    get(llvm::BitVector(positions));
    get(llvm::BitVector(positions, true));
  }

  const llvm::BitVector &operator[](Id id) const { return sets[id]; }

  Id get(const llvm::BitVector &set) {
    auto [at, isNew] = ids.try_emplace(set, sets.size());
    if (isNew)
      sets.push_back(set);
    return at->second;
  }

  Id unite(Id a, Id b) {
    if (a == b || b == kNone || a == kAll)
      return a;
    if (a == kNone || b == kAll)
      return b;
    return combine(unions, a, b, [](llvm::BitVector set, const llvm::BitVector &other) { return set |= other; });
  }

  Id intersect(Id a, Id b) {
    if (a == b || a == kNone || b == kAll)
      return a;
    if (b == kNone || a == kAll)
      return b;
    return combine(intersections, a, b,
                   [](llvm::BitVector set, const llvm::BitVector &other) { return set &= other; });
  }

  /// Where an op runs by its own `dist.at`.
  Id of(mlir::Operation *op) {
    auto at = op->getAttrOfType<mlir::DenseI64ArrayAttr>(DistDialect::kAtAttr);
    if (!at)
      return kAll;
    auto [known, isNew] = attributes.try_emplace(at, kNone);
    if (!isNew)
      return known->second;
    llvm::BitVector set(sets.front().size());
    for (int64_t position : at.asArrayRef())
      set.set(position);
    return attributes[at] = get(set);
  }

  /// Where an op runs, by its `dist.at` and those of the ops around it.
  Id runsAt(mlir::Operation *op) {
    Id at = kAll;
    for (; op; op = op->getParentOp())
      at = intersect(at, of(op));
    return at;
  }

private:
  using Known = llvm::DenseMap<std::pair<Id, Id>, Id>;
  using Join = llvm::function_ref<llvm::BitVector(llvm::BitVector, const llvm::BitVector &)>;
  Id combine(Known &known, Id a, Id b, Join join) {
    std::pair<Id, Id> key = std::minmax(a, b);
    if (auto at = known.find(key); at != known.end())
      return at->second;
    return known[key] = get(join(sets[a], sets[b]));
  }

  std::vector<llvm::BitVector> sets;
  llvm::DenseMap<llvm::BitVector, Id> ids;
  llvm::DenseMap<mlir::Attribute, Id> attributes;
  Known unions, intersections;
};

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_POSITIONSETS_H
