// nn-gradient-dtype: the type in which gradients of masters are kept, added up and reduced.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "../IR/Build.h"
#include "ModelRewriter.h"

namespace shoal::nn {
#define GEN_PASS_DEF_GRADIENTDTYPEPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

static bool isNarrow(Value value) { return getElementTypeOrSelf(value.getType()).isBF16(); }

/// The operands that have the type of the result and are widened with it; none where the result itself can be f32.
static std::optional<SmallVector<OpOperand *>> widenedOperands(Operation *op) {
  SmallVector<OpOperand *> operands;
  if (isa<MatmulOp, TensordotOp>(op))
    return operands; // sums in f32 anyway
  if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reduce.getKind() != Reduce::sum)
    return std::nullopt;
  if (!isa<AddOp, SubOp, MulOp, NegOp, SelectOp, MaskOp, ReduceOp, ReshapeOp, TransposeOp, BroadcastOp, PadOp, SliceOp,
           ZigzagOp, EmbeddingGradOp>(op))
    return std::nullopt;
  for (OpOperand &operand : op->getOpOperands())
    if (isNarrow(operand.get()))
      operands.push_back(&operand);
  return operands;
}

/// Of another stage of a pipeline than the reader, which gets what that one sends and nothing beside it.
static bool isOfAnotherStage(Operation *op, Operation *reader) {
  Attribute stage = op->getDiscardableAttr(origin::kStage), own = reader->getDiscardableAttr(origin::kStage);
  return stage && own && stage != own;
}

/// Makes an operand f32, without the rounding that made it bf16 where nobody else reads it: computed anew as far as it
/// is a sum, or moved; products write the sums that they have. A weight that is read often has a long sum: no recursion.
static void widen(OpBuilder &builder, OpOperand &root) {
  SmallVector<OpOperand *> work{&root};
  while (!work.empty()) {
    OpOperand &operand = *work.pop_back_val();
    Value value = operand.get();
    Operation *reader = operand.getOwner();
    for (auto cast = value.getDefiningOp<CastOp>();
         cast && isNarrow(value) && isFloat(cast.getInput()) && !isOfAnotherStage(cast, reader);
         cast = value.getDefiningOp<CastOp>())
      value = cast.getInput();
    if (isNarrow(value)) {
      Operation *op = value.getDefiningOp();
      bool isItsOwn = op && value.hasOneUse() && !isOfAnotherStage(op, reader);
      auto operands = isItsOwn ? widenedOperands(op) : std::nullopt;
      if (operands) {
        llvm::append_range(work, *operands);
        value.setType(typeOf(value).clone(builder.getF32Type()));
      } else {
        // The reader's, also where its stage gets the value from another.
        builder.setInsertionPoint(reader);
        auto cast = builder.create<CastOp>(value.getLoc(), typeOf(value).clone(builder.getF32Type()), value);
        if (Operation *home = reader->hasTrait<OpTrait::IsTerminator>() ? op : reader)
          copyOrigin(home, cast);
        value = cast;
      }
    }
    operand.set(value);
  }
}

namespace {

struct GradientDtypePass : shoal::nn::impl::GradientDtypePassBase<GradientDtypePass> {
  using GradientDtypePassBase::GradientDtypePassBase;

  void runOnOperation() override {
    if (to != "f32" && to != "bf16") {
      getOperation().emitError() << "grad-dtype must be f32 or bf16, got: " << to;
      return signalPassFailure();
    }
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      convert(model);
  }

private:
  void convert(func::FuncOp model);
};

} // namespace

void GradientDtypePass::convert(func::FuncOp model) {
  ArgTable arguments(model);
  func::ReturnOp end = getReturn(model);
  OpBuilder builder(end);
  SmallVector<Type> types(model.getResultTypes());
  for (auto [i, operand] : llvm::enumerate(end->getOpOperands())) {
    auto name = model.getResultAttrOfType<StringAttr>(i, NNDialect::kGradAttr);
    auto argument = name ? arguments.find(name.getValue()) : std::nullopt;
    if (!argument || !model.getArgAttr(*argument, NNDialect::kMasterAttr))
      continue;
    // The gradient of a master is that of its copy, widened.
    auto copy = operand.get().getDefiningOp<CastOp>();
    Value narrow = copy && isNarrow(copy.getInput()) ? copy.getInput() : Value();
    if (to == "f32") {
      if (narrow && copy->hasOneUse()) {
        operand.set(narrow);
        copy.erase();
        widen(builder, operand);
      }
      continue;
    }
    builder.setInsertionPoint(end);
    Operation *maker = operand.get().getDefiningOp();
    operand.set(narrow ? narrow : Build{builder, end.getLoc()}.cast(operand.get(), builder.getBF16Type()));
    if (!narrow && maker)
      copyOrigin(maker, operand.get().getDefiningOp());
    types[i] = operand.get().getType();
    if (copy && copy->use_empty())
      copy.erase();
  }
  model.setFunctionType(builder.getFunctionType(model.getArgumentTypes(), types));
}
