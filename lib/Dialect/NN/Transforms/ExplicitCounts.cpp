// nn-explicit-counts: no mean, and no reduction over a batch that would count rows which are not
// real.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "../IR/Build.h"
#include "ModelRewriter.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/BatchDims.h"
#include "shoal/Support/Decomposition.h"
#include "shoal/Support/SignatureEdit.h"

namespace shoal::nn {
#define GEN_PASS_DEF_EXPLICITCOUNTSPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

namespace {

/// Rewrites one model, first op to last.
class CountRewriter {
public:
  explicit CountRewriter(func::FuncOp model)
      : model(model), entry(model.getContext()), builder(model.getContext()), batch(1) {}

  LogicalResult run();

private:
  LogicalResult addValidRows();
  LogicalResult checkOwnCounts();
  LogicalResult rewrite(Operation *op);
  LogicalResult decompose(Operation *op);
  LogicalResult maskOperands(Operation *op, const ShardingRule &rule);
  LogicalResult checkFollowed(Operation *op, const ShardingRule &rule);
  LogicalResult checkResults();
  Value maskedOperand(OpOperand &operand, unsigned dim, int64_t inner, double fill);

  void markOutputs();
  /// Divides the only result of `op`, a sum by now, by the number of its terms, for all its users.
  void divideByCount(MeanOpInterface op);
  /// Product of the sizes of dimensions that all values have, real rows for those of the batch, as
  /// a scalar of `element`.
  Value countOf(ValueRange values, ArrayRef<int64_t> dims, Type element);
  /// The number of real rows times `inner`, computed once.
  Value limit(int64_t inner);

  func::FuncOp model;
  OpBuilder entry;   // after the arguments, for limits
  OpBuilder builder; // at the op in hand
  BatchDims batch;
  Value validRows;
  DenseMap<int64_t, Value> limits;
  SmallVector<Operation *> replaced;
  Value lossCount; // what the loss of an evaluation was divided by, if it is a mean
};

} // namespace

// The hidden argument.

LogicalResult CountRewriter::addValidRows() {
  FailureOr<int64_t> rows = getBatchRows(model);
  if (failed(rows) || *rows == 0)
    return rows;
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (getBatchDim(model, i) != 0)
      return emitArgError(model, i) << "is split into micro-batches: rows are counted before";
  batch = BatchDims(*rows);
  // A batch of one row is never short.
  if (*rows > 1)
    for (unsigned i = 0; i < model.getNumArguments(); ++i)
      if (isBatchedInput(model, i))
        batch.setInner(model.getArgument(i), 0, 1);
  validRows = SignatureEdit(model).addArgument(RankedTensorType::get({}, builder.getI64Type()),
                                               NNDialect::kValidRowsAttr, builder.getUnitAttr());
  return success();
}

/// Who has valid rows already counts by himself, or has been through this pass: nothing may be left that
/// takes statistics over the batch.
LogicalResult CountRewriter::checkOwnCounts() {
  int64_t rows = 1;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    if (!isBatchedInput(model, i))
      continue;
    int64_t size = cast<RankedTensorType>(model.getArgument(i).getType()).getDimSize(0);
    if (rows == 1)
      batch = BatchDims(rows = size);
    if (size == rows && rows > 1)
      batch.setInner(model.getArgument(i), 0, 1);
  }
  auto counts = [&](Operation *op, const ShardingRule &rule) {
    auto isStatistic = [&](unsigned factor) { return rule.factors[factor].kind == FactorKind::Decompose; };
    // In a region the batch is not followed: there it is the first dimension.
    if (op->getBlock() != &model.front())
      return !rule.operands[0].empty() && llvm::any_of(rule.operands[0][0], isStatistic);
    return llvm::any_of(op->getOperands(), [&](Value operand) { return batch.getLostAt(operand); }) ||
           llvm::any_of(batch.getBatchFactors(op, rule), [&](const BatchFactors &factors) {
             return llvm::any_of(factors.factors, isStatistic);
           });
  };
  auto counting = model.walk<WalkOrder::PreOrder>([&](ShardingRuleOpInterface op) {
    ShardingRule rule = op.getShardingRule();
    if (isa<BatchStatisticsOpInterface>(op.getOperation()) && counts(op, rule)) {
      op->emitOpError() << "would count rows that are not real; write its masked sums where the model "
                           "has 'nn.valid_rows' itself";
      return WalkResult::interrupt();
    }
    if (op->getBlock() == &model.front() &&
        llvm::any_of(op->getOperands(), [&](Value v) { return batch.isBatched(v); }))
      batch.propagate(op, rule);
    return WalkResult::advance();
  });
  return failure(counting.wasInterrupted());
}

Value CountRewriter::limit(int64_t inner) {
  if (inner == 1)
    return validRows;
  Value &result = limits[inner];
  if (!result) {
    result = Build{entry, model.getLoc()}.mul(validRows, double(inner));
  }
  return result;
}

Value CountRewriter::countOf(ValueRange values, ArrayRef<int64_t> dims, Type element) {
  // Any of them may be the one that brings the batch.
  auto batched = llvm::find_if(values, [&](Value value) { return batch.isBatched(value); });
  Value value = batched == values.end() ? values.front() : *batched;
  auto type = cast<RankedTensorType>(value.getType());
  Build b{builder, model.getLoc()};
  int64_t rest = 1;
  Value count;
  for (int64_t dim : dims) {
    int64_t inner = batch.getInner(value, dim);
    if (inner == 0) {
      rest *= type.getDimSize(dim);
      continue;
    }
    count = count ? b.mul(count, limit(inner)) : limit(inner);
  }
  if (!count)
    return b.scalar(element, rest);
  if (rest != 1)
    count = b.mul(count, double(rest));
  return b.cast(count, element);
}

// Means.

void CountRewriter::divideByCount(MeanOpInterface op) {
  Value sum = op->getResult(0);
  Type element = getElementTypeOrSelf(sum.getType());
  Value count = op.buildCount(builder, [&](ValueRange values, ArrayRef<int64_t> dims) {
    return countOf(values, dims, element);
  });
  builder.setInsertionPointAfter(op);
  auto mean = builder.create<DivOp>(op->getLoc(), sum, count);
  sum.replaceAllUsesExcept(mean, mean);
  // Batches of an evaluation weigh as many terms as they have.
  std::optional<unsigned> loss = findLoss(model);
  if (model->hasAttr(kEvaluationAttr) && loss && getReturn(model).getOperand(*loss) == mean.getResult() &&
      !element.isBF16()) // holds few counts exactly
    lossCount = count;
}

// Masks.

Value CountRewriter::maskedOperand(OpOperand &operand, unsigned dim, int64_t inner, double fill) {
  Value value = operand.get();
  Value masked =
      builder.create<MaskOp>(operand.getOwner()->getLoc(), value, limit(inner), Value(),
                             builder.getI64IntegerAttr(dim), builder.getF64FloatAttr(fill));
  for (unsigned d = 0; d < cast<RankedTensorType>(value.getType()).getRank(); ++d)
    if (int64_t same = batch.getInner(value, d))
      batch.setInner(masked, d, same);
  return masked;
}

/// A reduction over a value that lost its batch dimension may count rows that are not real.
LogicalResult CountRewriter::checkFollowed(Operation *op, const ShardingRule &rule) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Operation *lost = batch.getLostAt(operand);
    if (!lost)
      continue;
    for (ArrayRef<unsigned> factors : rule.operands[i])
      for (unsigned factor : factors)
        if (rule.factors[factor].kind == FactorKind::Reduction ||
            rule.factors[factor].kind == FactorKind::Decompose) {
          auto diag = op->emitOpError()
                      << "reduces operand " << i
                      << ", whose batch dimension cannot be followed: rows past the valid ones "
                         "would count";
          diag.attachNote(lost->getLoc()) << "lost in '" << lost->getName() << "'";
          return diag;
        }
  }
  return success();
}

LogicalResult CountRewriter::maskOperands(Operation *op, const ShardingRule &rule) {
  SmallVector<BatchFactors> batches;
  for (BatchFactors &factors : batch.getBatchFactors(op, rule))
    if (llvm::any_of(factors.factors, [&](unsigned factor) {
          return rule.factors[factor].kind == FactorKind::Reduction;
        }))
      batches.push_back(factors);
  if (batches.empty())
    return success();

  for (OpOperand &operand : op->getOpOperands()) {
    unsigned i = operand.getOperandNumber();
    if (llvm::is_contained(rule.leftOut, i))
      continue;
    for (auto [d, factors] : llvm::enumerate(rule.operands[i])) {
      std::optional<int64_t> inner = BatchDims::getInner(rule, factors, batches);
      if (!inner)
        return op->emitOpError() << "reduces a part of the batch dimension, in dimension " << d
                                 << " of operand " << i;
      if (*inner == 0)
        continue;
      std::optional<double> fill = i < rule.padding.size() ? rule.padding[i] : std::nullopt;
      if (!fill)
        fill = reductionIdentity(rule.factors[factors[0]].reduce,
                                 getElementTypeOrSelf(operand.get().getType()));
      if (!fill)
        return op->emitOpError() << "has no mask value for the batch dimension of operand " << i;
      operand.set(maskedOperand(operand, d, *inner, *fill));
    }
  }
  return success();
}

// Ops, first to last.

LogicalResult CountRewriter::decompose(Operation *op) {
  auto made = decomposeBefore(op, builder, [&](OpBuilder &b) -> FailureOr<SmallVector<Value>> {
    auto statistics = dyn_cast<BatchStatisticsOpInterface>(op);
    if (!statistics)
      return cast<ShardingRuleOpInterface>(op).decompose(b);
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    return statistics.decomposeWithCount(b, [&](ValueRange of, ArrayRef<int64_t> dims) {
      return countOf(of, dims, element);
    });
  });
  if (failed(made))
    return op->emitOpError() << "combines rows of the batch and cannot be decomposed";
  op->replaceAllUsesWith(made->values);
  replaced.push_back(op);
  for (Operation &part : made->parts)
    if (failed(rewrite(&part)))
      return failure();
  return success();
}

LogicalResult CountRewriter::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  OriginScope scope(builder, op);
  bool batched = llvm::any_of(op->getOperands(), [&](Value v) { return batch.isBatched(v); });
  if (op->getNumRegions() != 0) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        batched |= batch.isBatched(operand);
    });
    if (batched)
      return op->emitOpError()
             << "holds a region, through which the batch dimension is not followed; give the step without it "
                "(and its micro-batches by --microbatches)";
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner : llvm::make_early_inc_range(block))
          if (failed(rewrite(&inner)))
            return failure();
    return success();
  }

  // A mean's rule says nothing of its rows, that of the sum does.
  auto mean = dyn_cast<MeanOpInterface>(op);
  bool isMean = mean && mean.isMean();
  if (isMean)
    mean.makeSum();

  if (batched) {
    auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
    if (!sharded)
      return op->emitOpError() << "has no sharding rule to follow the batch dimension by; it must "
                                  "implement ShardingRuleOpInterface";
    ShardingRule rule = sharded.getShardingRule();
    for (const BatchFactors &factors : batch.getBatchFactors(op, rule))
      for (unsigned factor : factors.factors)
        if (rule.factors[factor].kind == FactorKind::Decompose) {
          if (isMean)
            return op->emitOpError() << "is a mean that combines rows of the batch and must be "
                                        "decomposed: its count cannot be followed";
          return decompose(op);
        }
    if (failed(checkFollowed(op, rule)) || failed(maskOperands(op, rule)))
      return failure();
    batch.propagate(op, rule);
  }
  // Behind the masks, which say what counts.
  if (isMean)
    divideByCount(cast<MeanOpInterface>(op));
  return success();
}

/// A loss or metric is a number of the whole batch: nothing may have scattered its rows on the way.
LogicalResult CountRewriter::checkResults() {
  for (unsigned i = 0; i < model.getNumResults(); ++i) {
    if (!model.getResultAttr(i, NNDialect::kLossAttr) &&
        !model.getResultAttr(i, NNDialect::kMetricAttr))
      continue;
    if (Operation *lost = batch.getLostAt(getReturn(model).getOperand(i)))
      return lost->emitOpError() << "combines or moves rows of the batch, which result " << i
                                 << " depends on: rows past the valid ones would count";
  }
  return success();
}

/// Says which outputs have one row, or slice, per row of the batch: files hold the real ones only.
void CountRewriter::markOutputs() {
  std::optional<unsigned> first;
  for (unsigned i = 0; i < model.getNumArguments() && !first; ++i)
    if (isBatchedInput(model, i))
      first = i;
  if (!first)
    return;
  int64_t rows = cast<RankedTensorType>(model.getArgument(*first).getType()).getDimSize(0);
  for (auto [index, value] : llvm::enumerate(getReturn(model).getOperands())) {
    auto type = cast<RankedTensorType>(value.getType());
    if (!model.getResultAttr(index, NNDialect::kOutputAttr))
      continue;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      // Batches of one row are not followed, since they are never short.
      bool batched =
          rows > 1 ? batch.getInner(value, dim) == 1 : dim == 0 && type.getDimSize(0) == 1;
      if (batched && type.getDimSize(dim) == rows)
        model.setResultAttr(index, kBatchDimAttr, builder.getI64IntegerAttr(dim));
    }
  }
}

LogicalResult CountRewriter::run() {
  if (findArg(model, ArgRole::ValidRows))
    return checkOwnCounts();
  if (failed(addValidRows()))
    return failure();
  entry.setInsertionPointToStart(&model.front());
  // Divisions that are inserted behind an op are visited too.
  func::ReturnOp end = getReturn(model);
  for (Operation *op = &model.front().front(); op != end; op = op->getNextNode())
    if (failed(rewrite(op)))
      return failure();
  for (Operation *op : replaced)
    op->erase();
  if (lossCount)
    SignatureEdit(model).addResult(lossCount, NNDialect::kMetricAttr,
                                   builder.getStringAttr(kLossCountMetric));
  markOutputs();
  return checkResults();
}

namespace {

struct ExplicitCountsPass : shoal::nn::impl::ExplicitCountsPassBase<ExplicitCountsPass> {
  void runOnOperation() override {
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(CountRewriter(model).run()))
        return signalPassFailure();
  }
};

} // namespace
