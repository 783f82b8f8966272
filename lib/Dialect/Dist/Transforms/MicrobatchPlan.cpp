// Follows the rows of the batch, and decides for every value when it is known; see MicrobatchPlan.h.
#include "MicrobatchPlan.h"

#include "FittingRule.h"

#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"

using namespace mlir;

namespace shoal::dist {

FailureOr<MicrobatchPlan> MicrobatchPlan::build(func::FuncOp model, int64_t rows, int64_t count) {
  MicrobatchPlan plan(rows, count);
  if (failed(plan.followRows(model)))
    return failure();
  plan.findStatistics(model);
  // Each run finds an early sum or is the last.
  bool found = true;
  while (found) {
    found = false;
    if (failed(plan.decide(model, found)))
      return failure();
  }
  // Found as they were read; made as they are defined.
  SmallVector<Value> order = plan.early.takeVector();
  llvm::sort(order, [](Value a, Value b) {
    return a.getDefiningOp() != b.getDefiningOp()
               ? a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp())
               : cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber();
  });
  plan.early.insert(order.begin(), order.end());
  return plan;
}

/// Rows enter by the inputs. What a gradient broadcasts, and positions, have rows because of what they meet, so the
/// dimensions are joined both ways, until nothing changes.
LogicalResult MicrobatchPlan::followRows(func::FuncOp model) {
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (nn::isBatchedInput(model, i))
      dims.setInner(model.getArgument(i), 0, 1);
  std::vector<std::pair<Operation *, ShardingRule>> ops;
  for (Operation &op : model.front().without_terminator()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled || op.getNumRegions() != 0)
      continue;
    FailureOr<ShardingRule> rule = getFittingRule(ruled);
    if (failed(rule))
      return failure();
    ops.emplace_back(&op, std::move(*rule));
  }
  bool changes = true;
  while (changes) {
    changes = false;
    for (auto &[op, rule] : ops)
      changes |= dims.join(op, rule);
    for (auto &[op, rule] : llvm::reverse(ops))
      changes |= dims.join(op, rule);
  }
  // With what lost its rows on the way.
  for (auto &[op, rule] : ops)
    dims.propagate(op, rule);
  return success();
}

/// What ops without rows make for ops with rows, as the mean of a batch to subtract it.
void MicrobatchPlan::findStatistics(func::FuncOp model) {
  auto isRow = [&](Value value) { return dims.isBatched(value); };
  for (Operation &op : llvm::reverse(model.front().without_terminator())) {
    if (llvm::any_of(op.getOperands(), isRow) || llvm::any_of(op.getResults(), isRow) || op.getNumRegions() != 0)
      continue;
    if (llvm::any_of(op.getUsers(), [&](Operation *user) {
          return statistics.contains(user) || llvm::any_of(user->getOperands(), isRow) ||
                 llvm::any_of(user->getResults(), isRow);
        }))
      statistics.insert(&op);
  }
}

LogicalResult MicrobatchPlan::decide(func::FuncOp model, bool &found) {
  whens.clear();
  ofParameters.clear();
  repeated.clear();
  for (BlockArgument argument : model.getArguments()) {
    switch (nn::getArgRole(model, argument.getArgNumber())) {
    case nn::ArgRole::Param:
    case nn::ArgRole::Buffer:
    case nn::ArgRole::State:
      ofParameters.insert(argument);
      break;
    default:
      break;
    }
    if (!dims.isBatched(argument))
      continue;
    if (!nn::isBatchedInput(model, argument.getArgNumber()))
      return emitError(argument.getLoc())
             << "a dimension of argument \"" << nn::getArgName(model, argument.getArgNumber())
             << "\" is that of the batch, which only batched inputs may have to be split into micro-batches; make it "
                "an nn.input or leave --microbatches out";
    whens[argument] = When::Each;
  }
  for (Operation &op : model.front().without_terminator()) {
    bool hasRows = llvm::any_of(op.getOperands(), [&](Value v) { return dims.isBatched(v); }) ||
                   llvm::any_of(op.getResults(), [&](Value v) { return dims.isBatched(v); });
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        hasRows |= dims.isBatched(operand);
        if (ofParameters.contains(operand))
          ofParameters.insert(op.result_begin(), op.result_end());
      }
    });
    if (!hasRows)
      decideSums(&op, found);
    else if (failed(decideRows(&op, found)))
      return failure();
    if (found) // what follows is decided with it
      return success();
    for (Value result : op.getResults())
      if (early.contains(result))
        whens[result] = When::Before;
  }
  for (auto [index, value] : llvm::enumerate(model.front().getTerminator()->getOperands()))
    if (getWhen(value) == When::Each && (count > 1 || !value.getDefiningOp()))
      return nn::emitResultError(model, index) << "has rows of the batch, which no micro-batch has all of; return a "
                                               << "sum of them or leave --microbatches out";
  return success();
}

/// A sum that needs no parameter can be had before: the pass over the labels is cheap, one over the model is not.
bool MicrobatchPlan::makeEarly(Value value) { return !ofParameters.contains(value) && early.insert(value); }

/// An op without rows: linear in sums, or behind them.
void MicrobatchPlan::decideSums(Operation *op, bool &found) {
  SmallVector<unsigned, 2> sums;
  bool isAfter = false;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      isAfter |= getWhen(operand) == When::After || (inner != op && getWhen(operand) == When::Sum);
  });
  for (OpOperand &operand : op->getOpOperands())
    if (getWhen(operand.get()) == When::Sum)
      sums.push_back(operand.getOperandNumber());
  if (sums.empty() && !isAfter)
    return;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (ruled && !isAfter && op->getNumRegions() == 0) {
    ShardingRule rule = ruled.getShardingRule();
    if (rule.linearKind == ReduceKind::Sum && (rule.movesOnly || llvm::any_of(rule.linear, [&](const auto &group) {
                                                 return ArrayRef<unsigned>(group) == ArrayRef<unsigned>(sums);
                                               }))) {
      repeated.insert(op);
      for (Value result : op->getResults())
        whens[result] = When::Sum;
      return;
    }
  }
  if (statistics.contains(op) && llvm::any_of(sums, [&](unsigned operand) {
        return isWhole(op->getOperand(operand)) && ofParameters.contains(op->getOperand(operand));
      })) {
    repeated.insert(op);
    for (Value result : op->getResults())
      whens[result] = When::Sum;
    return;
  }
  // Whole sums from here on. What a stage of a pipeline computes has its place in the schedule unless rows wait for it,
  // as the gradient of a loss that is linear in a parameter.
  for (unsigned operand : sums)
    if (statistics.contains(op) || findStages(op->getOperand(operand)).empty())
      found |= makeEarly(op->getOperand(operand));
  for (Value result : op->getResults())
    whens[result] = When::After;
}

LogicalResult MicrobatchPlan::decideRows(Operation *op, bool &found) {
  repeated.insert(op);
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || op->getNumRegions() != 0)
    return op->emitOpError() << (ruled ? "holds a region" : "has no sharding rule")
                             << ", through which the rows of the batch cannot be followed into micro-batches; "
                             << (ruled ? "run dist-microbatch before ops are put into regions"
                                       : "give it one (ShardingRuleOpInterface)");
  for (Value value : op->getResults())
    if (Operation *lost = dims.getLostAt(value))
      return lost->emitOpError() << "combines or moves rows of the batch, which micro-batches do not have together; "
                                    << "keep each row's computation to itself or leave --microbatches out";
  for (Value operand : op->getOperands()) {
    When when = getWhen(operand);
    if (when == When::Each || when == When::Before || (when == When::Sum && makeEarly(operand))) {
      found |= when == When::Sum;
      continue;
    }
    if ((when == When::Sum && early.contains(operand)) || isWhole(operand))
      continue;
    auto diag = op->emitOpError() << "needs a sum over all rows of the batch beside its rows, as the statistics of "
                                     "batch_norm are: no micro-batch knows it before all have run; normalise within "
                                     "a row (layer_norm) or leave --microbatches out";
    diag.attachNote(operand.getLoc()) << "the sum is made here";
    return diag;
  }
  ShardingRule rule = ruled.getShardingRule();
  SmallVector<BatchFactors> batches = dims.getBatchFactors(op, rule);
  for (const BatchFactors &batch : batches)
    for (unsigned factor : batch.factors) {
      FactorKind kind = rule.factors[factor].kind;
      if (kind == FactorKind::Decompose ||
          (kind == FactorKind::Reduction && rule.factors[factor].reduce != ReduceKind::Sum))
        return op->emitOpError()
               << "combines rows of the batch otherwise than by a sum, and micro-batches are added; reduce by a sum or "
                  "leave --microbatches out";
    }
  for (Value result : op->getResults())
    whens[result] = dims.isBatched(result) ? When::Each : When::Sum;
  return success();
}

SmallVector<Value> MicrobatchPlan::findSums(func::FuncOp model) const {
  llvm::SetVector<Value> sums;
  auto add = [&](Value value) {
    if (getWhen(value) == When::Sum || (count == 1 && getWhen(value) == When::Each && value.getDefiningOp()))
      sums.insert(value);
  };
  for (Operation &op : model.front())
    if (!isRepeated(&op))
      op.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), add); });
  return sums.takeVector();
}

} // namespace shoal::dist
