// Parts of a step, as what its results are computed from; see StepParts.h.
#include "shoal/Dialect/Dist/Transforms/StepParts.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Origin.h"

#include "shoal-rt/timeline.h"

using namespace mlir;

namespace shoal::dist {

/// What values are computed from. Of micro-batches only what yields them.
static DenseSet<Operation *> slice(SmallVector<Value> work) {
  DenseSet<Operation *> ops;
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto accumulate = dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp()))
        work.push_back(accumulate.getInputs()[argument.getArgNumber()]);
      continue;
    }
    auto result = cast<OpResult>(value);
    Operation *op = result.getOwner();
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      ops.insert(op);
      work.push_back(accumulate.getBody().front().getTerminator()->getOperand(result.getResultNumber()));
      continue;
    }
    if (!ops.insert(op).second)
      continue;
    op->walk([&](Operation *inner) {
      ops.insert(inner);
      llvm::append_range(work, inner->getOperands());
    });
  }
  return ops;
}

/// What the function returns as one of these.
static SmallVector<Value> findResults(FunctionOpInterface func, ArrayRef<StringRef> roles) {
  SmallVector<Value> found;
  Operation *end = func.getFunctionBody().back().getTerminator();
  for (unsigned i = 0; i < func.getNumResults() && i < end->getNumOperands(); ++i)
    if (llvm::any_of(roles, [&](StringRef role) { return bool(func.getResultAttr(i, role)); }))
      found.push_back(end->getOperand(i));
  return found;
}

DenseSet<Operation *> findForwardOps(FunctionOpInterface func) {
  SmallVector<Value> results = findResults(func, {nn::NNDialect::kLossAttr, nn::NNDialect::kOutputAttr});
  if (results.empty())
    llvm::append_range(results, func.getFunctionBody().back().getTerminator()->getOperands());
  return slice(std::move(results));
}

DenseSet<Operation *> findModelOps(FunctionOpInterface func) {
  DenseSet<Operation *> gradients = slice(findResults(func, {nn::NNDialect::kGradAttr}));
  OperandRange returned = func.getFunctionBody().back().getTerminator()->getOperands();
  if (gradients.empty())
    return slice(llvm::to_vector(returned));
  DenseSet<Operation *> forward = findForwardOps(func), ops = forward;
  nn::ArgTable arguments(func);
  for (auto [index, value] : llvm::enumerate(returned)) {
    auto updated = func.getResultAttrOfType<StringAttr>(index, nn::NNDialect::kUpdatesAttr);
    std::optional<unsigned> argument = updated ? arguments.find(updated.getValue()) : std::nullopt;
    bool isOfBuffer = argument && nn::getArgRole(func, *argument) == nn::ArgRole::Buffer;
    if (!isOfBuffer && !func.getResultAttr(index, nn::NNDialect::kMetricAttr))
      continue;
    DenseSet<Operation *> needed = slice({value});
    // As the norm of gradients does.
    bool readsGradients =
        llvm::any_of(needed, [&](Operation *op) { return gradients.contains(op) && !forward.contains(op); });
    if (!readsGradients)
      ops.insert(needed.begin(), needed.end());
  }
  return ops;
}

int64_t countRuns(Operation *op) {
  int64_t runs = 1;
  for (auto outer = op->getParentOfType<AccumulateOp>(); outer; outer = outer->getParentOfType<AccumulateOp>())
    runs *= outer.getMicrobatches();
  return runs;
}

/// What an action of a pipeline's schedule is for, messages included; none of ops that no pass of a stage is.
static std::optional<StepParts::Part> findPart(Operation *op) {
  auto scope = op->getAttrOfType<StringAttr>(origin::kScope);
  rt::ActionLabel action = scope ? rt::parseActionLabel(scope.getValue()) : rt::ActionLabel();
  bool isMessage = action.kind == 'S' || action.kind == 'R';
  if (!isMessage && !action.isPass())
    return std::nullopt;
  return (isMessage ? action.backward : action.kind != 'F') ? StepParts::Backward : StepParts::Forward;
}

StepParts::StepParts(FunctionOpInterface step)
    : forward(findForwardOps(step)), backward(slice(findResults(step, {nn::NNDialect::kGradAttr}))) {
  if (!hasGradients())
    return;
  SmallVector<Operation *> ops;
  step.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops)) {
    std::optional<Part> part = findPart(op);
    if (!part && !op->hasAttr(origin::kScope)) // what passes of stages read, several of which may share it
      for (Operation *user : op->getUsers())
        if (auto found = ofStages.find(user); found != ofStages.end())
          part = std::min(part.value_or(get(op)), found->second);
    if (part)
      ofStages[op] = *part;
  }
}

LogicalResult verifyRecompute(FunctionOpInterface func) {
  SmallVector<Operation *> marked;
  func.walk([&](Operation *op) {
    if (op->hasAttr(nn::NNDialect::kRecomputeAttr))
      marked.push_back(op);
  });
  if (marked.empty())
    return success();
  StepParts parts(func);
  for (Operation *op : marked)
    if (parts.get(op) == StepParts::Forward)
      return op->emitOpError() << "is marked '" << nn::NNDialect::kRecomputeAttr
                               << "', and the forward pass reads it: it must serve the backward pass alone";
  return success();
}

} // namespace shoal::dist
