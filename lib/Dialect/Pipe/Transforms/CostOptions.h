// The passes' options of durations, as costs.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_COSTOPTIONS_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_COSTOPTIONS_H

#include "shoal/Schedule/Costs.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

namespace shoal::pipe {

/// A generated base of a pass that has the options of durations.
template <typename PassBase> class WithCosts : public PassBase {
public:
  using PassBase::PassBase;

protected:
  /// Equal stages, with the bytes of `rank`; an error at `op` where an option is no duration.
  mlir::FailureOr<Costs> readCosts(mlir::Operation *op, const Shape &shape, StageCosts rank = {}) {
    for (const auto *option : {&this->forward, &this->backward, &this->backwardInput, &this->backwardWeight,
                               &this->transfer, &this->norm, &this->update})
      // Far below what sums of a schedule's durations could not hold.
      if (double value = *option; !(value >= 0 && value <= 1e15))
        return op->emitError() << option->ArgStr << " must be a duration from 0 to 1e15, got: " << value;
    rank.forward = this->forward;
    rank.backwardInput = this->backwardInput;
    rank.backwardWeight = this->backwardWeight;
    rank.backward = this->backward == 0 ? this->backwardInput + this->backwardWeight : this->backward;
    Costs costs = Costs::uniform(shape, rank);
    costs.transfer = this->transfer;
    costs.norm = this->norm;
    costs.update = this->update;
    return costs;
  }
};

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_COSTOPTIONS_H
