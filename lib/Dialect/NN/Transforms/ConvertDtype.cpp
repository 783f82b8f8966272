// nn-convert-dtype: one float type for the whole program.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "ModelRewriter.h"

#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace shoal::nn {
#define GEN_PASS_DEF_CONVERTDTYPEPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal::nn;

/// The same type with float elements of the wanted type; others unchanged.
static Type convertType(Type type, FloatType to) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return type;
  return tensor.clone(to);
}

static ElementsAttr convertElements(DenseFPElementsAttr elements, FloatType to) {
  return elements.mapValues(to, [&](APFloat value) {
    bool losesInfo;
    value.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    return value.bitcastToAPInt();
  });
}

namespace {

struct ConvertDtypePass : shoal::nn::impl::ConvertDtypePassBase<ConvertDtypePass> {
  using ConvertDtypePassBase::ConvertDtypePassBase;

  void runOnOperation() override {
    FloatType type;
    if (to == "f32")
      type = FloatType::getF32(&getContext());
    else if (to == "f64")
      type = FloatType::getF64(&getContext());
    if (!type) {
      getOperation().emitError() << "dtype must be f32 or f64, got: " << to;
      return signalPassFailure();
    }
    auto convert = [&](Type from) { return convertType(from, type); };
    getOperation().walk([&](Operation *op) {
      for (Value result : op->getResults())
        result.setType(convert(result.getType()));
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument arg : block.getArguments())
            arg.setType(convert(arg.getType()));
      if (auto func = dyn_cast<func::FuncOp>(op)) {
        FunctionType type = func.getFunctionType();
        auto inputs = llvm::to_vector(llvm::map_range(type.getInputs(), convert));
        auto results = llvm::to_vector(llvm::map_range(type.getResults(), convert));
        func.setType(FunctionType::get(&getContext(), inputs, results));
      }
      if (auto constant = dyn_cast<ConstantOp>(op))
        if (auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue()))
          constant.setValueAttr(convertElements(elements, type));
    });
    // A cast between float types has become an identity.
    getOperation().walk([](CastOp cast) {
      if (cast.getInput().getType() == cast.getType()) {
        cast.replaceAllUsesWith(cast.getInput());
        handOnStage(cast);
        cast.erase();
      }
    });
  }
};

} // namespace
