// How one op is computed on shards: which mesh axes each of its factors is sharded by, and so in
// which layout it reads its operands and makes its results. Numbers only; see ShardingRule.h.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FACTORSHARDING_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FACTORSHARDING_H

#include "ReshardPlan.h"

namespace shoal::dist {

struct OpSharding {
  llvm::SmallVector<Axes> factors;
  llvm::SmallVector<Layout> operands, results;

  /// Whether a factor of that kind is sharded.
  bool shards(const ShardingRule &rule, FactorKind kind) const;
  /// Points of the iteration space that one device computes.
  double localWork(const ShardingRule &rule, llvm::ArrayRef<int64_t> axisSizes) const;
};

/// Who has the first word when operands and results want a factor sharded differently.
enum class Lead { Results, Operands };

/// Derives the sharding of an op from the layouts of its operands and the wanted layouts of its
/// results (null where no one has a wish). `keepPartial`: a partial operand stays so where the op
/// is linear in it, and the result is partial; else it is reduced first.
///
/// The result's `operands[i].unreduced` never holds an axis that the op is not linear in, nor one
/// that shards a factor: those are reduced before the op.
OpSharding shardOp(const ShardingRule &rule, llvm::ArrayRef<int64_t> axisSizes,
                   llvm::ArrayRef<const Layout *> operands, llvm::ArrayRef<int64_t> operandBytes,
                   llvm::ArrayRef<const Layout *> results, Lead lead, bool keepPartial);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FACTORSHARDING_H
