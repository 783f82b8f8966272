// Finds the models of a module and edits their signatures and bodies.
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

static DictionaryAttr singleAttr(MLIRContext *context, StringRef name, Attribute attr) {
  return DictionaryAttr::get(context, NamedAttribute(StringAttr::get(context, name), attr));
}

BlockArgument addArgument(func::FuncOp model, Type type, StringRef attrName, Attribute attr) {
  unsigned index = model.getNumArguments();
  model.insertArgument(index, type, singleAttr(model.getContext(), attrName, attr), model.getLoc());
  return model.getArgument(index);
}

void addResult(func::FuncOp model, Value value, StringRef attrName, Attribute attr) {
  model.insertResult(model.getNumResults(), value.getType(),
                     singleAttr(model.getContext(), attrName, attr));
  getReturn(model).getOperandsMutable().append(value);
}

} // namespace shoal::nn
