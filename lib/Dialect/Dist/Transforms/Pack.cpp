// dist-pack: gradients, and what lies flat with them, become buckets.
#include "FlatBuckets.h"
#include "GradientRanges.h"
#include "JointReductions.h"
#include "OneBlock.h"
#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <algorithm>

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_PACKPASS
#include "shoal/passes/ShoalDist.h.inc"

namespace {

struct PackPass : impl::PackPassBase<PackPass> {
  using PackPassBase::PackPassBase;

  void runOnOperation() override {
    if (!lookupMesh(getOperation()))
      return; // one device
    if (!kBucketMbRule.holds(bucketMb)) {
      emitError(getOperation().getLoc(), "bucket-mb must be ") << kBucketMbRule.says << ", got: " << shortestDigits(bucketMb);
      return signalPassFailure();
    }
    // Whole bytes, at least one; more than any tensor has is one bucket.
    auto bucketBytes = static_cast<int64_t>(std::clamp(bucketMb * (1 << 20), 1.0, 0x1p62));
    auto packed = resolveAxes(getOperation(), SmallVector<std::string>(axes.begin(), axes.end()), "packing gradients");
    if (failed(packed))
      return signalPassFailure();
    SmallVector<StringAttr> jointAxes;
    for (const std::string &axis : joint)
      llvm::append_range(jointAxes, resolveAxis(packed->mesh.getMesh(), axis));
    BucketOptions options{packed->mesh, packed->axes, jointAxes, bucketBytes, overlap};
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      if (failed(requireReturningBlock(func, "packed")))
        return signalPassFailure();
      if (func->hasAttr(nn::kEvaluationAttr)) {
        if (failed(packAsTraining(func, options)))
          return signalPassFailure();
        continue;
      }
      reduceWhereMade(func, packed->mesh.getMesh(), packed->axes, jointAxes);
      if (failed(packFlat(func, options)))
        return signalPassFailure();
      packGradientRanges(func, packed->mesh, packed->axes, jointAxes, bucketBytes);
    }
  }
};

} // namespace
} // namespace shoal::dist
