// nn-explicit-counts: no mean, and no reduction over a batch that would count rows which are not
// real.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "BatchDims.h"
#include "ModelRewriter.h"

#include <limits>

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
  LogicalResult rewrite(Operation *op);
  LogicalResult decompose(Operation *op);
  LogicalResult maskOperands(Operation *op, const ShardingRule &rule);
  LogicalResult checkFollowed(Operation *op, const ShardingRule &rule);
  LogicalResult checkResults();
  Value maskedOperand(OpOperand &operand, unsigned dim, int64_t inner, double fill);

  void splitMean(ReduceOp op);
  void splitMean(MseLossOp op);
  void splitMean(CrossEntropyOp op);
  void markOutputs();
  /// Divides the only result of `op` by a count, for all its users.
  void divideResult(Operation *op, Value count);
  /// Product of the sizes of dimensions, real rows for those of the batch, as a scalar of
  /// `element`.
  Value countOf(Value value, ArrayRef<int64_t> dims, Type element);
  /// The number of real rows times `inner`, computed once.
  Value limit(int64_t inner);
  Value scalar(OpBuilder &at, Type element, double value) {
    return at.create<ConstantOp>(model.getLoc(), RankedTensorType::get({}, element), value);
  }

  func::FuncOp model;
  OpBuilder entry;   // after the arguments, for limits
  OpBuilder builder; // at the op in hand
  BatchDims batch;
  Value validRows;
  DenseMap<int64_t, Value> limits;
  SmallVector<Operation *> replaced;
};

} // namespace

//===-- the hidden argument ------------------------------------------------------------===//

LogicalResult CountRewriter::addValidRows() {
  std::optional<unsigned> first;
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    if (!isBatchedInput(model, i))
      continue;
    auto rows = [&](unsigned arg) {
      return cast<RankedTensorType>(model.getArgument(arg).getType()).getDimSize(0);
    };
    if (first && rows(i) != rows(*first))
      return model.emitOpError() << "batched inputs must have one number of rows, got: "
                                 << rows(*first) << " in \"" << getArgName(model, *first)
                                 << "\" and " << rows(i) << " in \"" << getArgName(model, i)
                                 << "\"";
    if (first)
      continue;
    first = i;
    if (rows(i) < 1)
      return model.emitOpError() << "a batch must have at least 1 row, got: " << rows(i);
    batch = BatchDims(rows(i));
  }
  if (!first)
    return success();
  int64_t size = cast<RankedTensorType>(model.getArgument(*first).getType()).getDimSize(0);
  // A batch of one row is never short.
  if (size > 1)
    for (unsigned i = 0; i < model.getNumArguments(); ++i)
      if (isBatchedInput(model, i))
        batch.setInner(model.getArgument(i), 0, 1);
  validRows = addArgument(model, RankedTensorType::get({}, builder.getI64Type()),
                          NNDialect::kValidRowsAttr, builder.getUnitAttr());
  return success();
}

Value CountRewriter::limit(int64_t inner) {
  if (inner == 1)
    return validRows;
  Value &result = limits[inner];
  if (!result) {
    Value factor = scalar(entry, entry.getI64Type(), inner);
    result = entry.create<MulOp>(model.getLoc(), validRows, factor);
  }
  return result;
}

Value CountRewriter::countOf(Value value, ArrayRef<int64_t> dims, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rest = 1;
  Value count;
  for (int64_t dim : dims) {
    int64_t inner = batch.getInner(value, dim);
    if (inner == 0) {
      rest *= type.getDimSize(dim);
      continue;
    }
    count = count ? builder.create<MulOp>(model.getLoc(), count, limit(inner)).getResult()
                  : limit(inner);
  }
  if (!count)
    return scalar(builder, element, rest);
  if (rest != 1)
    count =
        builder.create<MulOp>(model.getLoc(), count, scalar(builder, builder.getI64Type(), rest));
  auto countType = RankedTensorType::get({}, element);
  return count.getType() == countType
             ? count
             : builder.create<CastOp>(model.getLoc(), countType, count).getResult();
}

//===-- means ------------------------------------------------------------------------------===//

void CountRewriter::divideResult(Operation *op, Value count) {
  builder.setInsertionPointAfter(op);
  Value sum = op->getResult(0);
  auto mean = builder.create<DivOp>(op->getLoc(), sum, count);
  sum.replaceAllUsesExcept(mean, mean);
}

void CountRewriter::splitMean(ReduceOp op) {
  if (op.getKind() != Reduce::mean)
    return;
  Value count = countOf(op.getInput(), op.getDims(), op.getType().getElementType());
  op.setKind(Reduce::sum);
  divideResult(op, count);
}

void CountRewriter::splitMean(MseLossOp op) {
  if (op.getReduction() != LossReduction::mean)
    return;
  auto type = op.getPrediction().getType();
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  // Either side may be the one that brings the batch.
  Value value = batch.isBatched(op.getPrediction()) ? op.getPrediction() : op.getTarget();
  Value count = countOf(value, dims, type.getElementType());
  op.setReduction(LossReduction::sum);
  divideResult(op, count);
}

void CountRewriter::splitMean(CrossEntropyOp op) {
  if (op.getReduction() != LossReduction::mean)
    return;
  auto logits = op.getLogits().getType();
  auto targets = op.getTargets().getType();
  Type element = logits.getElementType();
  Value count;
  if (isa<FloatType>(targets.getElementType())) {
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, logits.getRank() - 1));
    Value value = batch.isBatched(op.getLogits()) ? op.getLogits() : op.getTargets();
    count = countOf(value, dims, element);
  } else {
    // The targets are masked already, so rows that are not real are ignored ones here.
    Location loc = op.getLoc();
    Type i64 = builder.getI64Type();
    Value ignored = scalar(builder, targets.getElementType(), int64_t(op.getIgnoreIndex()));
    Value counted = builder.create<CompareOp>(loc, Predicate::ne, op.getTargets(), ignored);
    count = builder.create<CastOp>(loc, targets.clone(i64), counted);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, targets.getRank()));
    if (!dims.empty())
      count = builder.create<ReduceOp>(loc, Reduce::sum, count, dims);
    count = builder.create<MaximumOp>(loc, count, scalar(builder, i64, 1));
    count = builder.create<CastOp>(loc, RankedTensorType::get({}, element), count);
  }
  op.setReduction(LossReduction::sum);
  divideResult(op, count);
}

//===-- masks --------------------------------------------------------------------------------===//

/// What leaves the reduction as it is; none when a mask can not hold it.
static std::optional<double> getIdentity(ReduceKind kind, Type element) {
  if (kind == ReduceKind::Sum)
    return 0.0;
  double infinity = std::numeric_limits<double>::infinity();
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return kind == ReduceKind::Max ? -infinity : infinity;
  double bound = std::ldexp(1.0, integer.getWidth() - 1);
  if (kind == ReduceKind::Max)
    return -bound;
  // The largest i64 is no double.
  if (integer.getWidth() > 53)
    return std::nullopt;
  return bound - 1;
}

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
                      << ", whose batch dimension can not be followed: rows past the valid ones "
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
    // An ignored target, or one without probability, is enough to leave a row out.
    if (isa<CrossEntropyOp>(op) && i == 0)
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
        fill = getIdentity(rule.factors[factors[0]].reduce,
                           getElementTypeOrSelf(operand.get().getType()));
      if (!fill)
        return op->emitOpError() << "has no mask value for the batch dimension of operand " << i;
      operand.set(maskedOperand(operand, d, *inner, *fill));
    }
  }
  return success();
}

//===-- ops, first to last
//----------------------------------------------------------------------===//

LogicalResult CountRewriter::decompose(Operation *op) {
  builder.setInsertionPoint(op);
  Operation *before = op->getPrevNode();
  auto values = cast<ShardingRuleOpInterface>(op).decompose(builder);
  if (failed(values))
    return op->emitOpError() << "combines rows of the batch and can not be decomposed";
  Operation *next = before ? before->getNextNode() : &op->getBlock()->front();
  op->replaceAllUsesWith(*values);
  replaced.push_back(op);
  for (; next != op; next = next->getNextNode())
    if (failed(rewrite(next)))
      return failure();
  return success();
}

LogicalResult CountRewriter::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  LayerScope layer(builder, op);
  bool batched = llvm::any_of(op->getOperands(), [&](Value v) { return batch.isBatched(v); });
  if (op->getNumRegions() != 0) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        batched |= batch.isBatched(operand);
    });
    if (batched)
      return op->emitOpError()
             << "holds a region, through which the batch dimension is not followed";
    return success();
  }

  if (batched) {
    auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
    if (!sharded)
      return op->emitOpError() << "has no sharding rule to follow the batch dimension by; it must "
                                  "implement ShardingRuleOpInterface";
    // A mean's rule says nothing of its rows, that of the sum does; divided by the count below.
    if (auto reduce = dyn_cast<ReduceOp>(op))
      splitMean(reduce);
    else if (auto mse = dyn_cast<MseLossOp>(op))
      splitMean(mse);
    bool isMean = false;
    if (auto entropy = dyn_cast<CrossEntropyOp>(op)) {
      isMean = entropy.getReduction() == LossReduction::mean;
      entropy.setReduction(LossReduction::sum);
    }
    builder.setInsertionPoint(op);

    ShardingRule rule = sharded.getShardingRule();
    for (const BatchFactors &factors : batch.getBatchFactors(op, rule))
      for (unsigned factor : factors.factors)
        if (rule.factors[factor].kind == FactorKind::Decompose)
          return decompose(op);
    if (failed(checkFollowed(op, rule)) || failed(maskOperands(op, rule)))
      return failure();
    batch.propagate(op, rule);
    if (isMean) {
      auto entropy = cast<CrossEntropyOp>(op);
      entropy.setReduction(LossReduction::mean);
      splitMean(entropy);
    }
    return success();
  }

  if (auto reduce = dyn_cast<ReduceOp>(op))
    splitMean(reduce);
  else if (auto mse = dyn_cast<MseLossOp>(op))
    splitMean(mse);
  else if (auto entropy = dyn_cast<CrossEntropyOp>(op))
    splitMean(entropy);
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
      bool batched = rows > 1 ? batch.getInner(value, dim) == 1 : dim == 0 && type.getDimSize(0) == 1;
      if (batched && type.getDimSize(dim) == rows)
        model.setResultAttr(index, kBatchDimAttr, builder.getI64IntegerAttr(dim));
    }
  }
}

LogicalResult CountRewriter::run() {
  // Who has valid rows already counts by himself, or has been through this pass.
  if (findArg(model, ArgRole::ValidRows))
    return success();
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
