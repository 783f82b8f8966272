// Finds the models of a module, and their ends.
#include "ModelRewriter.h"

using namespace mlir;

namespace shoal::nn {

FailureOr<SmallVector<func::FuncOp>> getModels(ModuleOp module) {
  SmallVector<func::FuncOp> models;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isDeclaration() || !isModel(func))
      continue;
    if (!func.getBody().hasOneBlock() || !isa<func::ReturnOp>(func.front().getTerminator()))
      return func.emitOpError() << "a model must be one block that ends in a return, got: "
                                << func.getBody().getBlocks().size() << " blocks";
    models.push_back(func);
  }
  return models;
}

func::ReturnOp getReturn(func::FuncOp model) {
  return cast<func::ReturnOp>(model.front().getTerminator());
}

} // namespace shoal::nn
