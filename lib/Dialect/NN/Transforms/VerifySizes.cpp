// nn-verify-sizes: every tensor has elements, and few enough that sums of their bytes fit 64 bits.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "shoal/Support/Elements.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace shoal::nn {
#define GEN_PASS_DEF_VERIFYSIZESPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;

namespace {

LogicalResult verifySize(Location loc, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || shoal::isCountable(tensor))
    return success();
  return emitError(loc) << "a tensor must hold from 1 to " << shoal::kMostElements << " elements, got: " << tensor;
}

struct VerifySizesPass : shoal::nn::impl::VerifySizesPassBase<VerifySizesPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult result = getOperation().walk([](Operation *op) -> WalkResult {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            if (failed(verifySize(argument.getLoc(), argument.getType())))
              return WalkResult::interrupt();
      for (Type type : op->getResultTypes())
        if (failed(verifySize(op->getLoc(), type)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
