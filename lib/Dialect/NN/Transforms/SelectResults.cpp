// nn-select-results: what training, evaluation or inference needs of a model, and nothing else.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "ModelRewriter.h"

#include "shoal/Support/DeadOps.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::nn {
#define GEN_PASS_DEF_SELECTRESULTSPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal::nn;

/// Ops that work on the batch in training are replaced by what they are in inference.
static void useInferenceForms(func::FuncOp model) {
  SmallVector<TrainingModeOpInterface> ops;
  model.walk([&](TrainingModeOpInterface op) { ops.push_back(op); });
  for (TrainingModeOpInterface op : ops) {
    OpBuilder builder(op);
    shoal::OriginScope scope(builder, op);
    op->replaceAllUsesWith(op.buildInference(builder));
    handOnStage(op);
    op->erase();
  }
}

namespace {

struct SelectResultsPass : shoal::nn::impl::SelectResultsPassBase<SelectResultsPass> {
  using SelectResultsPassBase::SelectResultsPassBase;

  void runOnOperation() override {
    if (mode != "train" && mode != "eval" && mode != "infer") {
      getOperation().emitError() << "mode must be train, eval or infer, got: " << mode;
      return signalPassFailure();
    }
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(selectResults(model)))
        return signalPassFailure();
  }

  LogicalResult selectResults(func::FuncOp model) {
    bool train = mode == "train", infer = mode == "infer";
    if (!train)
      useInferenceForms(model);
    if (!infer && !findLoss(model))
      return model.emitOpError() << (train ? "training" : "evaluation")
                                 << " needs a result with 'nn.loss', got none";

    auto isWanted = [&](ResultRole role) {
      bool judges = role == ResultRole::Loss || role == ResultRole::Metric;
      return infer ? role == ResultRole::Output : judges || (train && role != ResultRole::Output);
    };
    llvm::BitVector dropped(model.getNumResults());
    for (unsigned i = 0; i < model.getNumResults(); ++i) {
      dropped[i] = llvm::none_of(getResultRoles(model, i), [&](NamedRole named) { return isWanted(named.role); });
    }
    if (dropped.all())
      return model.emitOpError() << "inference needs a result with 'nn.output', got none";

    // A result that is several things keeps the roles of the chosen mode.
    {
      shoal::SignatureEdit signature(model);
      for (unsigned i = 0; i < model.getNumResults(); ++i)
        for (ResultRole role : kResultRoles)
          if (!isWanted(role))
            signature.setResultAttr(i, getRoleAttr(role), {});
    }
    if (!train && !infer)
      model->setAttr(kEvaluationAttr, UnitAttr::get(&getContext()));
    getReturn(model)->eraseOperands(dropped);
    model.eraseResults(dropped);
    shoal::eraseDeadOps(model.front(), handOnStage);

    llvm::BitVector unused(model.getNumArguments());
    for (unsigned i = 0; i < model.getNumArguments(); ++i) {
      // What training writes stays, even where nothing reads it.
      bool written = isUpdatable(getArgRole(model, i));
      unused[i] = model.getArgument(i).use_empty() && !(train && written);
    }
    model.eraseArguments(unused);
    return success();
  }
};

} // namespace
