// Where partial values are reduced. Linear ops carry a partial value on, so reductions are a cut between the ops that
// make partial values and the ops that read them whole; this finds the one that sends the fewest bytes.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARTIALCUT_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARTIALCUT_H

#include "PropagationGraph.h"

namespace shoal::dist {

/// Per slot, axes.
using AxisSets = std::vector<llvm::BitVector>;

struct PartialCut {
  /// Every op reads the value reduced.
  AxisSets reduced;
  /// Of these: the value is reduced where it is made, since some op that may read it partial would seem to send no
  /// more by reducing its result instead.
  AxisSets reducedWhereMade;
};

/// The cheapest cut; of equally cheap ones the last, so that a sum is reduced, not its terms. The layouts of the slots
/// are partial over all axes that they can be; `shardings` are how the nodes compute then.
PartialCut findPartialCut(const PropagationGraph &graph, llvm::ArrayRef<OpSharding> shardings);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARTIALCUT_H
