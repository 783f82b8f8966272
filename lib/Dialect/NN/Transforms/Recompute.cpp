// nn-recompute: what the backward pass reads of a layer is computed again where it is read, from what entered the
// layer and, with mode=selective, from the results of its products. A layer of several stages of a pipeline is one in
// each: no stage has what another made but what it sends.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "ModelRewriter.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace shoal::nn {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

namespace {

/// Repeats ops of one differentiated model.
class Recomputer {
public:
  Recomputer(func::FuncOp model, bool keepsProducts)
      : model(model), block(model.front()), keepsProducts(keepsProducts) {}

  LogicalResult run();

private:
  void findForward();
  void findActivations();
  void findLossOps();
  bool isSavedForBackward(Value value) const;
  bool isRepeatable(Operation *op) const;
  bool isReadInside(Operation *op, Operation *user) const;
  /// Of the ops that make `value` from what is kept, those that are not repeated yet, in program order.
  SmallVector<Operation *> findMissing(Value value) const;
  void repeat(Operation *op, OpBuilder &builder);

  func::FuncOp model;
  Block &block;
  bool keepsProducts;
  DenseSet<Operation *> forward;    // what results other than gradients are computed from
  DenseSet<Value> activations;      // values that depend on the batch
  SmallVector<Operation *> lossOps; // of layers, whose backward pass follows their forward pass at once
  DenseSet<Operation *> repeated;   // ops of the forward pass
  IRMapping again;                  // their results to those of the copies
};

/// The values that an op reads, in its regions too.
void forEachRead(Operation *op, function_ref<void(Value)> visit) {
  llvm::SetVector<Value> above;
  getUsedValuesDefinedAbove(op->getRegions(), above);
  for (Value value : op->getOperands())
    visit(value);
  for (Value value : above)
    visit(value);
}

Attribute layerOf(Operation *op) { return op->getDiscardableAttr(NNDialect::kLayerAttr); }

/// Whether ops are of one layer and one stage. What says no stage is computed in each that reads it.
bool areTogether(Operation *a, Operation *b) {
  Attribute stage = a->getDiscardableAttr(origin::kStage), other = b->getDiscardableAttr(origin::kStage);
  return layerOf(a) == layerOf(b) && (!stage || !other || stage == other);
}

} // namespace

void Recomputer::findForward() {
  SmallVector<Value> work;
  for (auto [i, value] : llvm::enumerate(getReturn(model).getOperands()))
    if (!model.getResultAttr(i, NNDialect::kGradAttr))
      work.push_back(value);
  while (!work.empty())
    if (Operation *def = work.pop_back_val().getDefiningOp(); def && forward.insert(def).second)
      forEachRead(def, [&](Value value) { work.push_back(value); });
}

/// A model whose inputs are no batches has activations all the same.
void Recomputer::findActivations() {
  bool hasBatch = hasBatchedInput(model);
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (hasBatch ? isBatchedInput(model, i) : getArgRole(model, i) == ArgRole::Input)
      activations.insert(model.getArgument(i));
  for (Operation &op : block.without_terminator()) {
    bool depends = false;
    forEachRead(&op, [&](Value value) { depends |= activations.contains(value); });
    if (depends)
      activations.insert(op.result_begin(), op.result_end());
  }
}

/// What makes the loss in layers: it is a scalar of theirs divided by a count, or a sum of such.
void Recomputer::findLossOps() {
  std::optional<unsigned> loss = findLoss(model);
  SmallVector<Value> work;
  if (loss)
    work.push_back(getReturn(model).getOperand(*loss));
  while (!work.empty()) {
    Value value = work.pop_back_val();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    Operation *op = value.getDefiningOp();
    if (!op || !type || type.getNumElements() != 1)
      continue;
    if (layerOf(op))
      lossOps.push_back(op);
    else
      llvm::append_range(work, op->getOperands());
  }
}

bool Recomputer::isReadInside(Operation *op, Operation *user) const {
  user = block.findAncestorOpInBlock(*user);
  return user->hasTrait<OpTrait::IsTerminator>() || !forward.contains(user) || areTogether(op, user);
}

bool Recomputer::isRepeatable(Operation *op) const {
  if (!forward.contains(op) || !layerOf(op) || !isMemoryEffectFree(op) ||
      llvm::any_of(lossOps, [&](Operation *loss) { return areTogether(op, loss); }))
    return false;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return !keepsProducts || !ruled || !isContraction(ruled.getShardingRule());
}

/// What enters another layer or stage serves that one's backward pass, and is there for its own; with it all that its
/// op makes.
bool Recomputer::isSavedForBackward(Value value) const {
  Operation *op = value.getDefiningOp();
  return !op || !activations.contains(value) || !isRepeatable(op) ||
         llvm::any_of(op->getUsers(), [&](Operation *user) { return !isReadInside(op, user); });
}

SmallVector<Operation *> Recomputer::findMissing(Value value) const {
  llvm::SetVector<Operation *> missing;
  auto add = [&](Value value) {
    if (!isSavedForBackward(value) && !repeated.contains(value.getDefiningOp()))
      missing.insert(value.getDefiningOp());
  };
  add(value);
  for (unsigned i = 0; i < missing.size(); ++i)
    forEachRead(missing[i], add);
  SmallVector<Operation *> ops = missing.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

void Recomputer::repeat(Operation *op, OpBuilder &builder) {
  Operation *copy = builder.clone(*op, again);
  copy->setDiscardableAttr(NNDialect::kRecomputeAttr, builder.getUnitAttr());
  repeated.insert(op);
  for (auto [value, repeatedValue] : llvm::zip_equal(op->getResults(), copy->getResults()))
    if (isSavedForBackward(value)) // its readers find the one that is kept
      again.erase(value);
}

LogicalResult Recomputer::run() {
  if (!hasGradient(model))
    return model.emitOpError() << "has no result with 'nn.grad', so no backward pass that could compute values again: run "
                                  "nn-differentiate first";
  findForward();
  if (llvm::none_of(forward, layerOf))
    return model.emitOpError() << "recomputes layer by layer, and none of its ops has 'nn.layer': name the layers, or leave "
                                  "--recompute out";
  findActivations();
  findLossOps();

  // Copies come before their reader, so the walk does not meet them.
  SmallVector<Operation *> backward;
  for (Operation &op : block.without_terminator())
    if (!forward.contains(&op))
      backward.push_back(&op);
  for (Operation *reader : backward) {
    OpBuilder builder(reader);
    SmallVector<Value> read;
    forEachRead(reader, [&](Value value) { read.push_back(value); });
    for (Value value : read) {
      if (isSavedForBackward(value))
        continue;
      for (Operation *op : findMissing(value))
        repeat(op, builder);
      value.replaceUsesWithIf(again.lookup(value), [&](OpOperand &use) {
        return block.findAncestorOpInBlock(*use.getOwner()) == reader;
      });
    }
  }
  if (repeated.empty())
    model.emitRemark("nothing to recompute: backward reads nothing of a layer but what enters it")
        << (keepsProducts ? " and the results of its products" : "");
  return success();
}

namespace {

struct RecomputePass : shoal::nn::impl::RecomputePassBase<RecomputePass> {
  using RecomputePassBase::RecomputePassBase;

  void runOnOperation() override {
    if (mode != "selective" && mode != "full") {
      emitError(getOperation().getLoc(), "mode must be selective or full, got: ") << mode;
      return signalPassFailure();
    }
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(Recomputer(model, mode == "selective").run()))
        return signalPassFailure();
  }
};

} // namespace
