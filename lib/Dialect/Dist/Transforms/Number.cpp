// dist-number: a number for every value of the global program, on the op that computes it.
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"

namespace shoal::dist {
#define GEN_PASS_DEF_NUMBERPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;

namespace {

struct NumberPass : shoal::dist::impl::NumberPassBase<NumberPass> {
  void runOnOperation() override {
    Builder builder(&getContext());
    int64_t next = 0;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op->getNumResults() > 0 &&
          isa_and_nonnull<shoal::nn::NNDialect, shoal::dist::DistDialect>(op->getDialect())) {
        op->setAttr(shoal::dist::DistDialect::kIdAttr, builder.getI64IntegerAttr(next));
        next += op->getNumResults();
      }
    });
  }
};

} // namespace
