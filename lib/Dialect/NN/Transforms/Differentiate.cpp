// nn-differentiate: reverse-mode differentiation of the loss, op by op from last to first.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "ModelRewriter.h"

#include "shoal/Dialect/NN/IR/Means.h"
#include "shoal/Support/SignatureEdit.h"

#include "llvm/ADT/MapVector.h"

namespace shoal::nn {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

namespace {

/// What the readers of a value, from the last to the first, add to its cotangent.
struct Cotangent {
  Value value;
  Attribute stage; // of the readers, or of the sum
  Attribute home;  // where readers of several stages meet, once asked for
};

/// Differentiates one model.
class Differentiator {
public:
  explicit Differentiator(func::FuncOp model)
      : model(model), builder(getReturn(model).getOperation()), stages(model) {}

  LogicalResult run();

private:
  /// Values of float type that depend on a parameter.
  void findActive();
  LogicalResult differentiate(Operation *op);
  void accumulate(Value value, Value cotangent, Operation *reader);

  func::FuncOp model;
  OpBuilder builder;
  StageTable stages;
  DenseSet<Value> active;
  DenseMap<Value, Cotangent> cotangents;
};

} // namespace

static bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

void Differentiator::findActive() {
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (getArgRole(model, i) == ArgRole::Param)
      active.insert(model.getArgument(i));
  for (Operation &op : model.front()) {
    bool dependent = false;
    // Regions capture values from above.
    op.walk([&](Operation *inner) {
      dependent |= llvm::any_of(inner->getOperands(), [&](Value v) { return active.contains(v); });
    });
    if (!dependent)
      continue;
    for (Value result : op.getResults())
      if (isFloatTensor(result.getType()))
        active.insert(result);
  }
}

/// A sum belongs to the reader that adds to it, unless it is of several stages: then to that of the value, which needs
/// all of it.
void Differentiator::accumulate(Value value, Value cotangent, Operation *reader) {
  Cotangent &sum = cotangents[value];
  Attribute stage = reader->getDiscardableAttr(origin::kStage);
  if (!sum.value) {
    sum = {cotangent, stage, {}};
    return;
  }
  auto add = builder.create<AddOp>(cotangent.getLoc(), sum.value, cotangent);
  if (stage != sum.stage) {
    sum.home = sum.home ? sum.home : stages.find(value);
    if (sum.home) {
      add->setDiscardableAttr(origin::kStage, sum.home);
      stage = sum.home;
    }
  }
  sum.value = add;
  sum.stage = stage;
}

LogicalResult Differentiator::differentiate(Operation *op) {
  SmallVector<Value> outer;
  for (Value result : op->getResults())
    outer.push_back(active.contains(result) ? cotangents.lookup(result).value : Value());
  if (llvm::none_of(outer, [](Value v) { return bool(v); }))
    return success();
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError() << "has no gradient and lies between a parameter and the loss; it "
                                "must implement DifferentiableOpInterface";

  llvm::BitVector needed(op->getNumOperands());
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    needed[i] = active.contains(operand);
  OriginScope scope(builder, op);
  auto inner = differentiable.buildVJP(builder, outer, needed);
  if (failed(inner))
    return failure();
  if (inner->size() != op->getNumOperands())
    return op->emitOpError() << "gradient must have one cotangent per operand, "
                             << op->getNumOperands() << ", got: " << inner->size();
  llvm::SmallMapVector<Value, Value, 4> own;
  for (auto [i, cotangent] : llvm::enumerate(*inner)) {
    if (!cotangent || !needed[i])
      continue;
    Type type = op->getOperand(i).getType();
    if (cotangent.getType() != type)
      return op->emitOpError() << "cotangent of operand " << i << " must be " << type
                               << ", got: " << cotangent.getType();
    // What one op adds to one value is summed first: where it is partial over devices, it is reduced once.
    Value &sum = own[op->getOperand(i)];
    sum = sum ? builder.create<AddOp>(cotangent.getLoc(), sum, cotangent).getResult() : cotangent;
  }
  for (auto [value, cotangent] : own)
    accumulate(value, cotangent, op);
  return success();
}

LogicalResult Differentiator::run() {
  std::optional<unsigned> lossIndex = findLoss(model);
  if (!lossIndex)
    return model.emitOpError() << "differentiation needs a result with 'nn.loss', got none";
  for (unsigned i = 0; i < model.getNumResults(); ++i)
    if (Attribute name = model.getResultAttr(i, NNDialect::kGradAttr))
      return model.emitOpError() << "is already differentiated: result " << i
                                 << " is the gradient of " << name;

  findActive();
  Value loss = getReturn(model).getOperand(*lossIndex);
  SmallVector<Operation *> forward;
  for (Operation &op : model.front().without_terminator()) {
    if (failed(verifyNoMean(&op)))
      return failure();
    forward.push_back(&op);
  }
  if (active.contains(loss))
    cotangents[loss].value =
        builder.create<ConstantOp>(loss.getLoc(), cast<RankedTensorType>(loss.getType()), 1.0);
  for (Operation *op : llvm::reverse(forward))
    if (failed(differentiate(op)))
      return failure();

  std::string missing;
  unsigned numArgs = model.getNumArguments();
  for (unsigned i = 0; i < numArgs; ++i)
    if (getArgRole(model, i) == ArgRole::Param && !cotangents.lookup(model.getArgument(i)).value)
      missing += (missing.empty() ? "\"" : ", \"") + getArgName(model, i).str() + "\"";
  if (!missing.empty())
    return model.emitOpError() << "every parameter must reach the loss, these have no gradient: "
                               << missing;
  SignatureEdit signature(model);
  for (unsigned i = 0; i < numArgs; ++i)
    if (getArgRole(model, i) == ArgRole::Param)
      signature.addResult(cotangents.lookup(model.getArgument(i)).value, NNDialect::kGradAttr,
                          builder.getStringAttr(getArgName(model, i)));
  return success();
}

namespace {

struct DifferentiatePass : shoal::nn::impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(Differentiator(model).run()))
        return signalPassFailure();
  }
};

} // namespace
