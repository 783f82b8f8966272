// `dist.accumulate` as its micro-batches one after another; part of dist-expand-collectives.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_UNROLLACCUMULATE_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_UNROLLACCUMULATE_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::dist {

/// Replaces the op by one copy of its body per micro-batch, on slices of the inputs, and sums. Adds to `nested` the
/// copies of such ops that it holds; each knows the micro-batch that it is in. From `freeGroup` on, the function has no
/// group of `dist.pack`.
void unrollAccumulate(AccumulateOp op, llvm::SmallVectorImpl<AccumulateOp> &nested, int64_t &freeGroup);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_UNROLLACCUMULATE_H
