// How one value gets from one layout to another: the sequence of collectives that sends the fewest
// bytes, found by a uniform-cost search over layouts. Plain numbers, no IR, so that the partitioner
// can ask for costs before it decides and unit tests can ask anything.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_RESHARDPLAN_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_RESHARDPLAN_H

#include "shoal/Interfaces/ShardingRule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shoal::dist {

/// Mesh axes by index into the mesh, major to minor.
using Axes = llvm::SmallVector<unsigned, 2>;

/// Where the elements of a tensor lie: a sharding without names, priorities and axes of size 1.
struct Layout {
  llvm::SmallVector<Axes, 4> dims;
  /// Axes over which every device holds a partial value; ascending.
  Axes unreduced;
  ReduceKind kind = ReduceKind::Sum;

  bool operator==(const Layout &other) const {
    return dims == other.dims && unreduced == other.unreduced &&
           (unreduced.empty() || kind == other.kind);
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }
  /// Whether the axis shards a dimension.
  bool shards(unsigned axis) const;
  bool uses(unsigned axis) const;
};

/// One collective; see the ops of the same names in `dist`.
struct ReshardStep {
  enum class Kind { AllSlice, AllGather, ReduceScatter, AllToAll, AllReduce, Permute };
  Kind kind;
  Axes axes;
  /// The dimension that is sliced, gathered or scattered; of an all-to-all the one that is split.
  int64_t dim = -1;
  /// All-to-all: the dimension that becomes whole.
  int64_t concat = -1;
  /// Permute: pairs of positions along `axes`.
  llvm::SmallVector<int64_t> sources, targets;
  /// The layout afterwards, and one device's shape in it.
  Layout layout;
  llvm::SmallVector<int64_t> shape;
  /// Bytes that one rank sends (shoal-rt/traffic.h).
  int64_t sentBytes = 0;
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  int64_t sentBytes = 0;
};

/// The shape of one device's shard: ceil(size / devices) per dimension.
llvm::SmallVector<int64_t> localShape(llvm::ArrayRef<int64_t> shape,
                                      llvm::ArrayRef<int64_t> axisSizes, const Layout &layout);

/// Number of devices along `axes`.
int64_t groupSize(llvm::ArrayRef<unsigned> axes, llvm::ArrayRef<int64_t> axisSizes);

/// Whether the shards of `size` over `outer` devices are exactly the unions of its shards over
/// `outer * inner` devices, so that the inner axes can be gathered or sliced on their own.
/// Padding breaks it: 5 elements over 2 devices are 3 + 2, over 2 x 2 they are 2 + 2 + 1 + 0.
bool shardsNest(int64_t size, int64_t outer, int64_t inner);

/// The cheapest way from one layout to another; ties go to fewer steps, then to a fixed order, so
/// that the plan is the same in every run. Where more than three axes move at once, not every order
/// of them is tried, and the way may not be the cheapest. Nothing when there is none: a whole value
/// cannot become partial, nor a sum a maximum. Axes of size 1 must not occur in the layouts.
std::optional<ReshardPlan> planReshard(llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                                       llvm::ArrayRef<int64_t> axisSizes, const Layout &from,
                                       const Layout &to);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_RESHARDPLAN_H
