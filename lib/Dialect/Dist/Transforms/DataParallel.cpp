// dist-data-parallel: the batch over one mesh axis, everything else replicated. Annotations only;
// the partitioner makes the collectives.
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Support/SignatureEdit.h"

namespace shoal::dist {
#define GEN_PASS_DEF_DATAPARALLELPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

struct DataParallelPass : dist::impl::DataParallelPassBase<DataParallelPass> {
  using Base::Base;

  void runOnOperation() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh) {
      getOperation().emitError("data parallelism over axis \"")
          << axis << "\" needs a dist.mesh in the module";
      return signalPassFailure();
    }
    auto name = StringAttr::get(&getContext(), axis);
    if (!mesh.getMesh().getAxisSize(name)) {
      mesh.emitError("data parallelism needs mesh axis ")
          << name << ", the mesh is " << mesh.getMesh();
      return signalPassFailure();
    }
    bool found = false;
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal() || !nn::hasBatchedInput(func))
        continue;
      found = true;
      if (failed(annotate(func, mesh, name)))
        return signalPassFailure();
    }
    if (!found) {
      getOperation().emitError("data parallelism needs a batched input (nn.input = \"name\"), "
                               "no function has one");
      signalPassFailure();
    }
  }

private:
  LogicalResult annotate(FunctionOpInterface func, MeshOp mesh, StringAttr axis) {
    auto symbol = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
    nn::ArgTable arguments(func);
    SignatureEdit signature(func);
    bool anySplit = false;
    for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        continue;
      auto sharding = func.getArgAttrOfType<ShardingAttr>(index, DistDialect::kShardingAttr);
      bool isHand = sharding != nullptr;
      if (!isHand)
        sharding = shardingOfParameter(func, arguments, signature, index);
      if (!sharding)
        sharding = ShardingAttr::getReplicated(symbol, tensor.getRank());
      if (nn::isBatchedInput(func, index)) {
        auto split = splitRows(func, index, sharding, axis, isHand);
        if (failed(split))
          return failure();
        sharding = *split;
        anySplit |= llvm::is_contained(sharding.getDimAxes(0), axis);
      }
      signature.setArgAttr(index, DistDialect::kShardingAttr, sharding);
    }
    if (!anySplit)
      return func.emitError("data parallelism over ")
             << axis << ": annotations by hand keep every batched input whole";
    return success();
  }

  /// State lies as the parameter that it belongs to.
  static ShardingAttr shardingOfParameter(FunctionOpInterface func, const nn::ArgTable &arguments,
                                          const SignatureEdit &signature, unsigned index) {
    auto state = func.getArgAttrOfType<nn::StateAttr>(index, nn::NNDialect::kStateAttr);
    auto parameter = state ? arguments.find(state.getOf().getValue()) : std::nullopt;
    if (!parameter || func.getArgumentTypes()[*parameter] != func.getArgumentTypes()[index])
      return {};
    return dyn_cast_or_null<ShardingAttr>(
        signature.getArgAttr(*parameter, DistDialect::kShardingAttr));
  }

  /// The sharding with the axis on dimension 0. A closed one written by hand stays as it is, unless
  /// it uses the axis elsewhere.
  FailureOr<ShardingAttr> splitRows(FunctionOpInterface func, unsigned index, ShardingAttr sharding,
                                    StringAttr axis, bool isHand) {
    if (sharding.getDims().empty())
      return func.emitError("batched input \"")
             << nn::getArgName(func, index) << "\" must have a sample dimension, got a scalar";
    if (llvm::is_contained(sharding.getDimAxes(0), axis))
      return sharding;
    if (sharding.uses(axis)) {
      InFlightDiagnostic diag = func.emitError("data parallelism shards dimension 0 of input \"")
                                << nn::getArgName(func, index) << "\" over " << axis
                                << ", but its annotation uses the axis elsewhere: " << sharding;
      diag.attachNote(func.getArgument(index).getLoc()) << "annotated here";
      return diag;
    }
    DimShardingAttr rows = sharding.getDims()[0];
    if (isHand && rows.getIsClosed())
      return sharding;
    SmallVector<DimShardingAttr> dims(sharding.getDims());
    SmallVector<StringAttr> axes(rows.getAxes());
    axes.push_back(axis);
    dims[0] = DimShardingAttr::get(&getContext(), axes, rows.getIsClosed(), rows.getPriority());
    return sharding.withDims(dims);
  }
};

} // namespace
