// The factors of a tensor whose dimensions have one each, as most rules begin.
#ifndef SHOAL_INTERFACES_ADDFACTORS_H
#define SHOAL_INTERFACES_ADDFACTORS_H

#include "shoal/Interfaces/ShardingRule.h"

namespace shoal {

/// Adds a factor of its own for each dimension.
inline TensorFactors addFactors(ShardingRule &rule, llvm::ArrayRef<int64_t> shape,
                                FactorKind kind = FactorKind::PassThrough) {
  TensorFactors tensor;
  for (int64_t size : shape)
    tensor.push_back({rule.addFactor(size, kind)});
  return tensor;
}

} // namespace shoal

#endif // SHOAL_INTERFACES_ADDFACTORS_H
