// Norms as the ops they are made of. Sums over a row, and what is computed of them, share the loop over
// rows, so that a row is read from memory once.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

using namespace mlir;

namespace shoal::lowering {
namespace {

template <typename Op> SmallVector<Value> byParts(Op op, ValueRange, LinalgBuilder &) {
  return lowerByParts(op);
}

} // namespace

void attachNormModels(MLIRContext &context) {
  attach<nn::BatchNormOp, byParts<nn::BatchNormOp>>(context);
  attach<nn::LayerNormOp, byParts<nn::LayerNormOp>>(context);
  attach<nn::RmsNormOp, byParts<nn::RmsNormOp>>(context);
}

} // namespace shoal::lowering
