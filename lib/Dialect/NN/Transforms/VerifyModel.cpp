// nn-verify-model: a model as it was written has nothing that only passes write, and no name that passes give.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/MadeByPasses.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal::nn {
#define GEN_PASS_DEF_VERIFYMODELPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

/// Begins an error about what has an attribute or a name: an op, or an argument or result of a function.
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult verifyAttributes(ArrayRef<NamedAttribute> attributes, EmitError emitError) {
  for (NamedAttribute attribute : attributes) {
    StringRef makers = getMakers(attribute.getNameDialect(), attribute.getName());
    if (!makers.empty())
      return emitError() << "'" << attribute.getName().getValue() << "' is made by " << makers << "; remove it";
  }
  return success();
}

/// The names of `nn-optimize`, whether it gives them in this mode or not: a model trains with any optimizer.
static LogicalResult verifyArgumentName(FunctionOpInterface func, unsigned index, const ArgTable &arguments) {
  StringRef name = getArgName(func, index);
  for (StringRef suffix : kStateSuffixes) {
    if (!name.ends_with(suffix))
      continue;
    std::optional<unsigned> param = arguments.find(name.drop_back(suffix.size()));
    if (param && getArgRole(func, *param) == ArgRole::Param)
      return emitArgError(func, index) << "name must not be that of the optimizer's state of "
                                       << StringAttr::get(func.getContext(), getArgName(func, *param))
                                       << ", its parameter's and '" << suffix << "'";
  }
  return success();
}

/// What shoalc has written of a training step is full of what passes make: said first, and once.
static LogicalResult verifyNotDifferentiated(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (func.getResultAttr(i, NNDialect::kGradAttr))
      return emitResultError(func, i) << "is a gradient, '" << NNDialect::kGradAttr
                                      << "', which nn-differentiate makes: the model is already differentiated; give it "
                                      << "as it was written";
  return success();
}

static LogicalResult verifyFunction(FunctionOpInterface func) {
  ArgTable arguments(func);
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (failed(verifyAttributes(func.getArgAttrs(i), [&] { return emitArgError(func, i); })) ||
        failed(verifyArgumentName(func, i, arguments)))
      return failure();
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    auto emitError = [&] { return emitResultError(func, i); };
    if (failed(verifyAttributes(func.getResultAttrs(i), emitError)))
      return failure();
    for (NamedRole named : getResultRoles(func, i))
      if (StringRef rule = brokenReservation(NameScope::Model, getRoleAttr(named.role), named.name); !rule.empty())
        return emitError() << "'" << getRoleAttr(named.role) << "' name must " << rule;
  }
  return success();
}

namespace {

struct VerifyModelPass : shoal::nn::impl::VerifyModelPassBase<VerifyModelPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto func : getOperation().getOps<FunctionOpInterface>())
      if (failed(verifyNotDifferentiated(func)))
        return signalPassFailure();
    WalkResult result = getOperation().walk([](Operation *op) -> WalkResult {
      if (StringRef makers = getMakers(op); !makers.empty())
        return op->emitOpError() << "is made by " << makers << "; remove it";
      if (failed(verifyAttributes(llvm::to_vector(op->getDiscardableAttrs()), [op] { return op->emitOpError(); })))
        return WalkResult::interrupt();
      auto func = dyn_cast<FunctionOpInterface>(op);
      return func && failed(verifyFunction(func)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
