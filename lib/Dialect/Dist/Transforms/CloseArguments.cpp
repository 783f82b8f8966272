// dist-close-arguments: what no strategy and no hand has sharded lies whole on every device. The last strategy,
// so that propagation cannot give a position table or a norm's weight an axis that no one asked for.
#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::dist {
#define GEN_PASS_DEF_CLOSEARGUMENTSPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

struct CloseArgumentsPass : dist::impl::CloseArgumentsPassBase<CloseArgumentsPass> {
  void runOnOperation() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return; // one device
    for (auto func : getOperation().getOps<FunctionOpInterface>())
      if (!func.isExternal() && nn::isModel(func) && failed(close(func, mesh)))
        return signalPassFailure();
  }

private:
  static LogicalResult close(FunctionOpInterface func, MeshOp mesh) {
    auto symbol = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
    nn::ArgTable table(func);
    ArgAnnotator arguments(func, mesh);
    for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || arguments.get(index))
        continue;
      // State lies as the parameter that it belongs to, which precedes it.
      auto state = func.getArgAttrOfType<nn::StateAttr>(index, nn::NNDialect::kStateAttr);
      auto parameter = state ? table.find(state.getOf().getValue()) : std::nullopt;
      ShardingAttr sharding = parameter ? arguments.get(*parameter) : ShardingAttr();
      if (!sharding || sharding.isReplicated() || tensor.getRank() == 0) {
        arguments.set(index, ShardingAttr::getReplicated(symbol, tensor.getRank()));
        if (parameter)
          arguments.setFlatAs(index, *parameter);
        continue;
      }
      auto whole = cast<RankedTensorType>(func.getArgumentTypes()[*parameter]);
      if (whole.getShape() != tensor.getShape()) {
        InFlightDiagnostic diag = emitError(func.getArgument(index).getLoc())
                                  << "state \"" << nn::getArgName(func, index) << "\" of " << tensor
                                  << " cannot lie as its parameter, which has another shape, and needs an annotation: "
                                  << whole << " lies as " << sharding;
        diag.attachNote(func.getArgument(*parameter).getLoc()) << "the parameter is here";
        return diag;
      }
      arguments.setAs(index, *parameter);
      arguments.setFlatAs(index, *parameter);
    }
    return success();
  }
};

} // namespace
