// What ops of a region over micro-batches say once it is unrolled: attributes of L2, written by
// dist-expand-collectives, read by dist-verify-plan and where kernels are made, and gone behind that.
#ifndef SHOAL_DIALECT_DIST_IR_MICROBATCHES_H
#define SHOAL_DIALECT_DIST_IR_MICROBATCHES_H

#include "llvm/ADT/StringRef.h"

namespace shoal::dist {

/// On every op that the region had, i64: the number of its micro-batch, counted over those of regions around it. Ops of
/// two are not one kernel, which would make one micro-batch wait for the other and hold the activations of both.
inline constexpr llvm::StringLiteral kMicrobatchAttr = "dist.microbatch";

/// On nn.add, unit: one more term of a sum over micro-batches. Nobody else reads its first operand, so it may be added
/// in place.
inline constexpr llvm::StringLiteral kRunningSumAttr = "dist.running_sum";

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_MICROBATCHES_H
