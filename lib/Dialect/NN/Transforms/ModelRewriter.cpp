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

static Attribute stageOf(Operation *op) { return op->getDiscardableAttr(origin::kStage); }

void handOnStage(Operation *op) {
  Attribute stage = stageOf(op);
  Operation *next = op->getNextNode();
  if (stage && next && !next->hasTrait<OpTrait::IsTerminator>() && !stageOf(next))
    next->setDiscardableAttr(origin::kStage, stage);
}

StageTable::StageTable(func::FuncOp model) {
  int64_t number = 0;
  SmallVector<Operation *> ops;
  model.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  // From the last op to the first, whose readers are all known by then.
  for (Operation *op : llvm::reverse(ops)) {
    ++number;
    Reader own{op, number};
    if (!stageOf(op)) {
      own = {};
      for (Value result : op->getResults())
        if (Reader reader = first.lookup(result); reader.op && (!own.op || reader.number > own.number))
          own = reader;
    }
    if (own.op)
      for (Value operand : op->getOperands())
        if (Reader &known = first[operand]; !known.op || own.number > known.number)
          known = own;
  }
}

Attribute StageTable::find(Value value) const {
  if (Operation *maker = value.getDefiningOp())
    if (Attribute stage = stageOf(maker))
      return stage;
  Reader reader = first.lookup(value);
  return reader.op ? stageOf(reader.op) : Attribute();
}

} // namespace shoal::nn
