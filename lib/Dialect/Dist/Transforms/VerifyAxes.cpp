// dist-verify-axes: no device of the mesh only repeats the work of another one.
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace shoal::dist {
#define GEN_PASS_DEF_VERIFYAXESPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal::dist;

namespace {

struct VerifyAxesPass : shoal::dist::impl::VerifyAxesPassBase<VerifyAxesPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return;
    llvm::StringSet<> used;
    getOperation().walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](ShardingAttr sharding) {
        for (DimShardingAttr dim : sharding.getDims())
          for (StringAttr axis : dim.getAxes())
            used.insert(axis.getValue());
      });
    });
    for (MeshAxisAttr axis : mesh.getMesh().getAxes()) {
      if (axis.getSize() == 1 || used.contains(axis.getName().getValue()))
        continue;
      // Of the axes that no strategy takes unasked, one has a flag.
      bool hasFlag = getAxisOrigin(axis.getName().getValue()) == kTensorAxis;
      mesh.emitError("mesh axis '") << axis.getName().getValue() << "' of size " << axis.getSize()
                                    << " shards nothing; " << (hasFlag ? "shard over it by --tensor-parallel, " : "")
                                    << "annotate a value with it or take it out of the mesh";
      return signalPassFailure();
    }
  }
};

} // namespace
