// nn-mixed-precision: activations in bf16, computed from f32 masters. A forward program is rewritten op by op, before
// anything is derived from it, so that gradients have the types of what they are gradients of.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "../IR/Build.h"
#include "ModelRewriter.h"

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Support/SignatureEdit.h"

namespace shoal::nn {
#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

namespace {

/// What an op makes of bf16.
enum class Precision {
  Product, // operands are made bf16, so is the result: where the time goes
  Storage, // bf16 in, bf16 out: computed in f32 and rounded once
  Full,    // f32 in, f32 out: sums, losses and what grows without bound
};

class MixedPrecision {
public:
  explicit MixedPrecision(func::FuncOp model)
      : model(model), builder(model.getContext()), bf16(builder.getBF16Type()), f32(builder.getF32Type()) {}

  LogicalResult run();

private:
  void copyMasters();
  void rewrite(Operation *op);
  void store(Operation *op);
  void compare(CompareOp op);
  void convertOperands(Operation *op, Type from, Type to);
  void rewriteReturn();
  Value convert(Value value, Type to);
  /// f32 of inputs and constants alone: joins activations without making f32 of them.
  bool isFlexible(Value value) const { return elementOf(value) == f32 && !dependent.contains(value); }

  static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }
  static bool hasRank(Value value) { return typeOf(value).getRank() > 0; }

  func::FuncOp model;
  OpBuilder builder;
  Type bf16, f32;
  DenseSet<Value> dependent; // on a parameter
  DenseMap<std::pair<Value, Type>, Value> converted;
};

} // namespace

/// Where an op is in the table. Exponentials and roots are full, since models write norms and losses with them; what
/// nobody has judged is full, too.
static Precision precisionOf(Operation *op) {
  if (isa<MatmulOp, TensordotOp, AttentionOp>(op))
    return Precision::Product;
  if (isa<AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp, NegOp, TanhOp, ReluOp, SigmoidOp, SiluOp, ErfOp, ErfcOp,
          SinOp, CosOp, GeluOp, SelectOp, MaskOp, DropoutOp, SoftmaxOp, LayerNormOp, RmsNormOp, RopeOp, RotateOp,
          EmbeddingOp>(op))
    return Precision::Storage;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  bool moves = ruled && op->getNumOperands() > 0 && ruled.getShardingRule().movesOnly;
  return moves ? Precision::Storage : Precision::Full;
}

/// What a rotation reads beside its input stays as it is.
static ValueRange dataOf(Operation *op) {
  return isa<RotateOp>(op) ? op->getOperands().take_front() : op->getOperands();
}

Value MixedPrecision::convert(Value value, Type to) {
  if (elementOf(value) == to)
    return value;
  Value &result = converted[{value, to}];
  if (!result)
    result = Build{builder, value.getLoc()}.cast(value, to);
  return result;
}

void MixedPrecision::convertOperands(Operation *op, Type from, Type to) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()) && elementOf(operand.get()) == from)
      operand.set(convert(operand.get(), to));
}

/// A parameter becomes a master, of which the step uses a copy. Updates in the file keep the master.
void MixedPrecision::copyMasters() {
  SignatureEdit signature(model);
  builder.setInsertionPointToStart(&model.front());
  for (BlockArgument argument : model.getArguments()) {
    if (getArgRole(model, argument.getArgNumber()) != ArgRole::Param || elementOf(argument) != f32)
      continue;
    signature.setArgAttr(argument.getArgNumber(), NNDialect::kMasterAttr, builder.getUnitAttr());
    auto isUse = [](OpOperand &use) {
      return !isa<OptimizerUpdateOpInterface, func::ReturnOp>(use.getOwner());
    };
    if (llvm::none_of(argument.getUses(), isUse))
      continue;
    auto copy = builder.create<CastOp>(argument.getLoc(), typeOf(argument).clone(bf16), argument);
    setClass(copy, exec::StorageClass::param);
    argument.replaceUsesWithIf(copy, [&](OpOperand &use) { return use.getOwner() != copy && isUse(use); });
    dependent.insert(copy);
  }
}

/// The type follows the operands. With another float type among them it is computed in f32, and rounded where all that
/// is f32 is scalars, or comes from inputs and constants alone.
void MixedPrecision::store(Operation *op) {
  bool hasNarrow = false, allNarrow = true, mayNarrow = true;
  for (Value operand : dataOf(op)) {
    if (!isFloat(operand))
      continue;
    bool isNarrow = elementOf(operand) == bf16;
    hasNarrow |= isNarrow;
    allNarrow &= isNarrow;
    mayNarrow &= isNarrow || isFlexible(operand) || (elementOf(operand) == f32 && !hasRank(operand));
  }
  if (!hasNarrow)
    return;
  Value result = op->getResult(0);
  if (allNarrow) {
    result.setType(typeOf(result).clone(bf16));
    return;
  }
  convertOperands(op, bf16, f32);
  if (!mayNarrow)
    return;
  builder.setInsertionPointAfter(op);
  Value stored = convert(result, bf16);
  result.replaceAllUsesExcept(stored, stored.getDefiningOp());
  dependent.insert(stored);
}

void MixedPrecision::compare(CompareOp op) {
  if (elementOf(op.getLhs()) != elementOf(op.getRhs()))
    convertOperands(op, bf16, f32);
}

void MixedPrecision::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  OriginScope scope(builder, op);
  if (llvm::any_of(op->getOperands(), [&](Value operand) { return dependent.contains(operand); }))
    for (Value result : op->getResults())
      if (isFloat(result))
        dependent.insert(result);
  if (isa<CastOp>(op))
    return; // says its own types
  if (auto comparison = dyn_cast<CompareOp>(op))
    return compare(comparison);
  // The log-sum-exp, and so the loss, is f32 of bf16 logits; distributions have the type of logits.
  if (auto loss = dyn_cast<CrossEntropyOp>(op); loss && !isFloat(loss.getTargets()))
    return;
  switch (precisionOf(op)) {
  case Precision::Product: {
    Value result = op->getResult(0);
    if (elementOf(result) != f32)
      return;
    convertOperands(op, f32, bf16);
    result.setType(typeOf(result).clone(bf16));
    return;
  }
  case Precision::Storage:
    return store(op);
  case Precision::Full:
    return convertOperands(op, bf16, f32);
  }
}

/// Results keep their types: losses, metrics and buffers are f32 already, outputs are widened.
void MixedPrecision::rewriteReturn() {
  func::ReturnOp end = getReturn(model);
  builder.setInsertionPoint(end);
  for (auto [operand, type] : llvm::zip_equal(end->getOpOperands(), model.getResultTypes()))
    operand.set(convert(operand.get(), getElementTypeOrSelf(type)));
}

LogicalResult MixedPrecision::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : model.front().without_terminator()) {
    if (op.getNumRegions() != 0)
      return op.emitOpError() << "holds a region, in which activations are not made bf16; give the step without it "
                                 "(and its micro-batches by --microbatches)";
    ops.push_back(&op);
  }
  copyMasters();
  for (Operation *op : ops)
    rewrite(op);
  rewriteReturn();
  return success();
}

namespace {

struct MixedPrecisionPass : shoal::nn::impl::MixedPrecisionPassBase<MixedPrecisionPass> {
  void runOnOperation() override {
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(MixedPrecision(model).run()))
        return signalPassFailure();
  }
};

} // namespace
