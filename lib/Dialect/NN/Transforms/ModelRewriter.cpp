// Finds the models of a module, and their ends.
#include "ModelRewriter.h"

#include "llvm/ADT/SetVector.h"

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

Attribute findStage(Value value) {
  auto stageOf = [](Operation *op) { return op->getDiscardableAttr(origin::kStage); };
  if (Operation *maker = value.getDefiningOp())
    if (Attribute stage = stageOf(maker))
      return stage;
  Block *block = value.getParentBlock();
  llvm::SetVector<Operation *> readers(value.user_begin(), value.user_end());
  Operation *first = nullptr;
  for (unsigned i = 0; i < readers.size(); ++i) { // grows
    Operation *reader = block->findAncestorOpInBlock(*readers[i]);
    if (!stageOf(readers[i]))
      readers.insert(readers[i]->user_begin(), readers[i]->user_end());
    else if (!first || reader->isBeforeInBlock(block->findAncestorOpInBlock(*first)))
      first = readers[i];
  }
  return first ? stageOf(first) : Attribute();
}

} // namespace shoal::nn
