// Passes of the dist dialect: annotation, propagation, partitioning, collectives. See Passes.td.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_PASSES_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_PASSES_H

#include "shoal/Support/OptionTable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shoal::dist {

#define GEN_PASS_DECL
#include "shoal/passes/ShoalDist.h.inc"

#define GEN_PASS_REGISTRATION
#include "shoal/passes/ShoalDist.h.inc"

/// Of dist-pack's bucket-mb.
inline constexpr NumberRule kBucketMbRule = {"above 0 and at most 1e6", "MIB",
                                             [](double value) { return value > 0 && value <= 1e6; }};

/// Of what --zero takes; dist-zero runs for stages from 1 on.
inline constexpr NumberRule kZeroRule = {"0, 1, 2 or 3", "0|1|2|3",
                                         [](double value) { return value >= 0 && value <= 3; }};

/// How attention finds the tokens of other shards of its sequence, as dist-context-parallel says, or "none": no flag.
inline constexpr llvm::StringRef kContextModes[] = {"none", "ring", "zigzag", "ulysses", "allgather", "hybrid"};

/// Of dist-microbatch's count.
inline constexpr NumberRule kMicrobatchesRule = {"from 1 to 65536", "M",
                                                 [](double value) { return value >= 1 && value <= 65536; }};

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_PASSES_H
