// dist-verify-axes: no device of the mesh only repeats the work of another one, nor has none in silence; buckets lie over
// batch axes.
#include "FlatBuckets.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace shoal::dist {
#define GEN_PASS_DEF_VERIFYAXESPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

/// Tells of the devices that have no row of any batch, or of any micro-batch: they compute, for nobody.
void tellIdleDevices(func::FuncOp func, MeshOp meshOp) {
  MeshAttr mesh = meshOp.getMesh();
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    if (!nn::isBatchedInput(func, index))
      continue;
    ShardingAttr sharding = getSharding(func.getArgument(index));
    unsigned dim = nn::getBatchDim(func, index);
    ArrayRef<StringAttr> axes = sharding ? sharding.getDimAxes(dim) : ArrayRef<StringAttr>();
    int64_t rows = cast<RankedTensorType>(func.getArgumentTypes()[index]).getDimSize(dim), devices = mesh.getSize(axes);
    int64_t each = shardSize(rows, devices);
    if (rows == 0 || each * (devices - 1) < rows)
      continue;
    bool isPart = func.getArgAttr(index, nn::kBatchRowsAttr) != nullptr;
    InFlightDiagnostic remark = meshOp.emitRemark();
    remark << devices - (rows + each - 1) / each << " of " << devices << " ranks along ";
    llvm::interleaveComma(axes, remark);
    remark << " compute padding only: a " << (isPart ? "micro-batch" : "batch") << " has " << rows
           << (rows == 1 ? " row" : " rows");
    if (each > 1)
      remark << ", " << each << " for each rank that has some";
    remark << "; take " << (isPart ? "fewer micro-batches, " : "") << "a larger batch or fewer ranks";
    return; // every batched input has as many rows
  }
}

/// Buckets, of training and of evaluation, lie over the axes that batches are split over.
LogicalResult verifyFlat(func::FuncOp func) {
  bool hasBatch = nn::hasBatchedInput(func);
  auto isOfBatch = [](StringAttr axis) { return getAxisRole(axis.getValue()) == AxisRole::Batch; };
  return visitFlat(func, [&](Location loc, StringRef name, FlatAttr flat) -> LogicalResult {
    if (hasBatch && llvm::all_of(flat.getAxes(), isOfBatch))
      return success();
    if (!hasBatch)
      return emitError(loc) << name << " lies flat over the axes of a batch, and no input has one, got: " << flat
                            << "; shard it by dist.sharding";
    return emitError(loc) << name << " must lie flat over axes that a batch is split over (replica, data), got: " << flat
                          << "; shard it over others by dist.sharding";
  });
}

struct VerifyAxesPass : shoal::dist::impl::VerifyAxesPassBase<VerifyAxesPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(verifyFlat(func)))
        return signalPassFailure();
    llvm::StringSet<> used;
    getOperation().walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](Attribute attr) {
        if (auto dim = dyn_cast<DimShardingAttr>(attr))
          for (StringAttr axis : dim.getAxes())
            used.insert(axis.getValue());
      });
    });
    for (MeshAxisAttr axis : mesh.getMesh().getAxes()) {
      StringRef name = axis.getName().getValue();
      bool isPipe = getAxisRole(name) == AxisRole::Pipe;
      if (isPipe && used.contains(name)) {
        mesh.emitError("mesh axis '") << name << "' is for the stages of a pipeline, and no sharding names it; shard "
                                      << "over another axis";
        return signalPassFailure();
      }
      if (axis.getSize() == 1 || isPipe || used.contains(name))
        continue;
      StringRef flag = getAxisFlag(name);
      mesh.emitError("mesh axis '") << name << "' of size " << axis.getSize() << " shards nothing; "
                                    << (flag.empty() ? "" : ("shard over it by " + flag + ", ").str())
                                    << "annotate a value with it or take it out of the mesh";
      return signalPassFailure();
    }
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        tellIdleDevices(func, mesh);
  }
};

} // namespace
