// The sharding rule of an op for passes that rely on it.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FITTINGRULE_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FITTINGRULE_H

#include "shoal/Interfaces/ShardingRule.h"

namespace shoal::dist {

/// The op's rule; an error where that does not fit the op.
inline llvm::FailureOr<ShardingRule> getFittingRule(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  if (!fits(rule, op))
    return op->emitOpError("has a sharding rule that does not cover the dimensions of its operands and results");
  return rule;
}

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FITTINGRULE_H
