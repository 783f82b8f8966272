// The stored order of a sequence whose shards have equal work under a causal mask (nn.zigzag): what the forward and the
// backward pass compute of the sequence is in that order, what enters and leaves them in the original one.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ZIGZAGORDER_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ZIGZAGORDER_H

#include "SequenceDims.h"

namespace shoal::dist {

/// Rewrites the function so, for `axes`, which shard the sequence: nn.zigzag on inputs and parameters that have it, its
/// inverse in front of the update, of results, and of ops to which the order matters; positions for the others that look
/// at indices. Diagnoses sequences of several lengths.
llvm::LogicalResult storeInZigzag(mlir::func::FuncOp func, MeshOp mesh, const SequenceDims &sequence,
                                  const DimGroups &groups, llvm::ArrayRef<mlir::StringAttr> axes, CauseAttr why);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ZIGZAGORDER_H
