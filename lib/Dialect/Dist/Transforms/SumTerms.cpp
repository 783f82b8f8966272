// A tree of adds as its terms; see SumTerms.h.
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"

#include "shoal/Dialect/NN/IR/NN.h"

using namespace mlir;

namespace shoal::dist {

SmallVector<Value> collectTerms(Value whole, Operation *reader) {
  SmallVector<Value> terms;
  SmallVector<std::pair<Value, Operation *>> work{{whole, reader}}; // with the reader that falls away
  while (!work.empty()) {
    auto [value, reader] = work.pop_back_val();
    auto sum = value.getDefiningOp<nn::AddOp>();
    auto isOther = [reader = reader](Operation *user) { return user != reader; };
    if (!sum || sum.getLhs() == sum.getRhs() || llvm::any_of(sum->getUsers(), isOther) ||
        sum.getLhs().getType() != value.getType() || sum.getRhs().getType() != value.getType()) {
      terms.push_back(value);
      continue;
    }
    work.push_back({sum.getRhs(), sum});
    work.push_back({sum.getLhs(), sum});
  }
  return terms;
}

} // namespace shoal::dist
