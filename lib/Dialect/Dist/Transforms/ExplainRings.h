// What explanations say of a ring: keys and values that pass by all ranks, hop by hop, beside the products that they are
// for.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_EXPLAINRINGS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_EXPLAINRINGS_H

#include "shoal/Dialect/Dist/Transforms/Explain.h"

namespace shoal::dist {

/// The ring of hops that carry the same number, in program order; what is estimated of them is for the rank that has
/// the least to do meanwhile. `overlap` as for `explain`.
Ring describeRing(llvm::ArrayRef<const Explanation *> hops, MeshAttr mesh, bool overlap);

inline constexpr llvm::StringLiteral kNoOverlap = "nothing: --no-overlap";

/// Whether the mesh position runs an op of the step, which those around it may leave to others.
bool runsAt(mlir::Operation *op, int64_t position);
/// "3.46 kFLOP".
std::string printFlops(double flops);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_EXPLAINRINGS_H
