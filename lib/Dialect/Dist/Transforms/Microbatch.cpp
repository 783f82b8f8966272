// dist-microbatch: what depends on the rows of the batch becomes the body of a sum over micro-batches.
#include "MicrobatchPlan.h"
#include "OneBlock.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/IR/IRMapping.h"

namespace shoal::dist {
#define GEN_PASS_DEF_MICROBATCHPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

using When = MicrobatchPlan::When;

/// Splits one model.
class Splitter {
public:
  Splitter(func::FuncOp model, MicrobatchPlan &&plan, int64_t rows, int64_t count)
      : model(model), plan(std::move(plan)), count(count), rows(rows), part(shardSize(rows, count)) {}

  LogicalResult run();

private:
  friend class PartContext;

  /// [micro-batches, rows of each, ...]
  RankedTensorType getSplitType(Value input) const;
  void splitInputs();
  Value addMicrobatch(OpBuilder &builder, Value input);
  /// The region that adds up `sums`, which readers outside of micro-batches then read.
  LogicalResult accumulate(OpBuilder &builder, ArrayRef<Value> sums);
  SmallVector<Operation *> findOps(ArrayRef<Value> sums) const;
  LogicalResult addOp(OpBuilder &builder, Operation *op);
  RankedTensorType getPartType(Value value) const;
  /// The index in the whole batch of the first element of a micro-batch along a dimension; null without rows.
  Value getOffset(Value value, unsigned dim);

  func::FuncOp model;
  MicrobatchPlan plan;
  int64_t count, rows, part; // micro-batches, rows of a batch, rows of a micro-batch

  // Of the region in hand.
  IRMapping local;
  Value number;                    // of the micro-batch, in its body
  DenseMap<int64_t, Value> offsets; // by elements per row
};

/// What an op's `localize` asks: a micro-batch is a shard of the batch in time.
class PartContext : public LocalizeContext {
public:
  PartContext(Splitter &splitter, Operation *op) : splitter(splitter), op(op) {}

  RankedTensorType localResultType(unsigned result) const override {
    return splitter.getPartType(op->getResult(result));
  }
  int64_t globalOperandSize(unsigned operand, unsigned dim) const override {
    return getTensorType(op->getOperand(operand)).getDimSize(dim);
  }
  Value operandOffset(OpBuilder &, unsigned operand, unsigned dim) const override {
    return splitter.getOffset(op->getOperand(operand), dim);
  }
  Value resultOffset(OpBuilder &, unsigned result, unsigned dim) const override {
    return splitter.getOffset(op->getResult(result), dim);
  }

private:
  Splitter &splitter;
  Operation *op;
};

} // namespace

RankedTensorType Splitter::getPartType(Value value) const {
  RankedTensorType type = getTensorType(value);
  SmallVector<int64_t> shape(type.getShape());
  for (auto [d, size] : llvm::enumerate(shape))
    if (int64_t inner = plan.getInner(value, d))
      size = part * inner;
  return type.clone(shape);
}

Value Splitter::getOffset(Value value, unsigned dim) {
  int64_t inner = plan.getInner(value, dim);
  if (inner == 0)
    return {};
  Value &offset = offsets[inner];
  if (!offset) {
    // At the start of the body, for all that ask: of no origin.
    OpBuilder builder(model.getContext());
    builder.setInsertionPointAfterValue(number);
    auto scalar = RankedTensorType::get({}, builder.getI64Type());
    Location loc = model.getLoc();
    Value index = builder.create<nn::ReshapeOp>(loc, scalar, number);
    Value elements = builder.create<nn::ConstantOp>(loc, scalar, DenseIntElementsAttr::get(scalar, part * inner));
    offset = builder.create<nn::MulOp>(loc, index, elements);
  }
  return offset;
}

/// A reshape takes the first dimension of 1 for that of the batch, as it does where it drops others behind it.
static Value swapFirst(OpBuilder &builder, Value value) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(value.getType()).getRank()));
  std::swap(order[0], order[1]);
  return builder.create<nn::TransposeOp>(value.getLoc(), value, order);
}

RankedTensorType Splitter::getSplitType(Value input) const {
  RankedTensorType type = getPartType(input);
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), count);
  return type.clone(shape);
}

/// The argument as it is, as the only micro-batch.
Value Splitter::addMicrobatch(OpBuilder &builder, Value input) {
  Value one = builder.create<nn::ReshapeOp>(input.getLoc(), getSplitType(input), input);
  return rows == 1 ? swapFirst(builder, one) : one;
}

/// Arguments [rows, ...] become [micro-batches, rows of each, ...]: shards of the batch are shards of every
/// micro-batch, so that none has to be exchanged.
void Splitter::splitInputs() {
  SignatureEdit signature(model);
  Builder b(model.getContext());
  for (unsigned i = 0; i < model.getNumArguments(); ++i) {
    if (!nn::isBatchedInput(model, i))
      continue;
    signature.setArgType(i, getSplitType(model.getArgument(i)));
    signature.setArgAttr(i, nn::kBatchRowsAttr, b.getI64IntegerAttr(rows));
    if (auto sharding = dyn_cast_or_null<ShardingAttr>(signature.getArgAttr(i, DistDialect::kShardingAttr))) {
      SmallVector<DimShardingAttr> dims{DimShardingAttr::get(b.getContext(), {}, /*isClosed=*/true, /*priority=*/0)};
      llvm::append_range(dims, sharding.getDims());
      signature.setArgAttr(i, DistDialect::kShardingAttr, sharding.withDims(dims));
    }
  }
}

/// In program order: the repeated ops from which sums are made.
SmallVector<Operation *> Splitter::findOps(ArrayRef<Value> sums) const {
  llvm::SetVector<Operation *> needed;
  for (Value sum : sums)
    needed.insert(sum.getDefiningOp());
  for (size_t next = 0; next < needed.size(); ++next)
    for (Value operand : needed[next]->getOperands())
      if (plan.getWhen(operand) != When::Before && operand.getDefiningOp())
        needed.insert(operand.getDefiningOp());
  SmallVector<Operation *> ops(needed.getArrayRef());
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

LogicalResult Splitter::addOp(OpBuilder &builder, Operation *op) {
  OriginScope scope(builder, op);
  SmallVector<Value> operands, results;
  for (Value operand : op->getOperands())
    operands.push_back(local.lookupOrDefault(operand));
  if (failed(cast<ShardingRuleOpInterface>(op).localize(builder, operands, PartContext(*this, op), results)))
    return op->emitOpError("cannot be built on a micro-batch");
  local.map(op->getResults(), results);
  return success();
}

LogicalResult Splitter::accumulate(OpBuilder &builder, ArrayRef<Value> sums) {
  Location loc = model.getLoc();
  SmallVector<Operation *> ops = findOps(sums);
  llvm::SetVector<Value> inputs;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isa<BlockArgument>(operand) && plan.getWhen(operand) == When::Each)
        inputs.insert(operand);
  auto numbers = RankedTensorType::get({count}, builder.getI64Type());
  SmallVector<Value> operands;
  for (Value input : inputs)
    operands.push_back(count == 1 ? addMicrobatch(builder, input) : input);
  operands.push_back(builder.create<nn::IotaOp>(loc, numbers, builder.getI64IntegerAttr(0)));
  auto region =
      builder.create<AccumulateOp>(loc, TypeRange(ValueRange(sums)), operands, builder.getI64IntegerAttr(count));

  local.clear();
  offsets.clear();
  Block &body = region.getBody().emplaceBlock();
  OpBuilder inside = OpBuilder::atBlockEnd(&body);
  for (Value input : inputs) {
    RankedTensorType type = getPartType(input);
    SmallVector<int64_t> one(type.getShape());
    one.insert(one.begin(), 1);
    Value argument = body.addArgument(type.clone(one), loc);
    if (part == 1)
      argument = swapFirst(inside, argument);
    local.map(input, inside.create<nn::ReshapeOp>(loc, type, argument).getResult());
  }
  number = body.addArgument(RankedTensorType::get({1}, builder.getI64Type()), loc);
  for (Operation *op : ops)
    if (failed(addOp(inside, op)))
      return failure();
  SmallVector<Value> yields;
  for (Value sum : sums)
    yields.push_back(local.lookup(sum));
  inside.create<YieldOp>(loc, yields);
  for (auto [i, sum] : llvm::enumerate(sums)) {
    // Ops that are repeated read an early sum whole, too; their own sums stay theirs.
    bool isEarly = plan.getWhen(sum) == When::Before;
    Value(sum).replaceUsesWithIf(region.getResult(i), [&](OpOperand &use) {
      return isEarly || !plan.isRepeated(model.front().findAncestorOpInBlock(*use.getOwner()));
    });
  }
  return success();
}

LogicalResult Splitter::run() {
  SmallVector<Operation *> repeated, after;
  SmallVector<Value> sums = plan.findSums(model);
  for (Operation &op : model.front().without_terminator())
    if (plan.isRepeated(&op))
      repeated.push_back(&op);
    else if (llvm::any_of(op.getResults(), [&](Value v) { return plan.getWhen(v) == When::After; }))
      after.push_back(&op);
  // What is known before keeps its place; behind it the micro-batches, then what reads their sums.
  OpBuilder builder(model.getContext());
  Operation *end = model.front().getTerminator();
  for (Operation *op : after)
    op->moveBefore(end);
  for (Value sum : plan.getEarlySums()) {
    builder.setInsertionPointAfter(sum.getDefiningOp());
    if (failed(accumulate(builder, {sum})))
      return failure();
  }
  if (!sums.empty()) {
    builder.setInsertionPoint(after.empty() ? end : after.front());
    if (failed(accumulate(builder, sums)))
      return failure();
  }
  for (Operation *op : llvm::reverse(repeated)) {
    op->dropAllUses();
    op->erase();
  }
  if (count > 1)
    splitInputs();
  return success();
}

namespace {

struct MicrobatchPass : dist::impl::MicrobatchPassBase<MicrobatchPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!kMicrobatchesRule.holds(double(count))) {
      emitError(getOperation().getLoc(), "count must be ") << kMicrobatchesRule.says << ", got: " << count.getValue();
      return signalPassFailure();
    }
    // A pipeline takes the batch in one part, too.
    if (count == 1 && !hasPipeline(getOperation()))
      return;
    bool found = false;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || !nn::hasBatchedInput(func))
        continue;
      found = true;
      if (failed(split(func)))
        return signalPassFailure();
    }
    if (!found) {
      emitError(getOperation().getLoc(),
                "micro-batches need a batched input (nn.input = \"name\"), no function has one");
      signalPassFailure();
    }
  }

private:
  LogicalResult split(func::FuncOp func) {
    if (failed(requireReturningBlock(func, "split into micro-batches")))
      return failure();
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (func.getArgAttr(i, nn::kBatchRowsAttr))
        return nn::emitArgError(func, i) << "is split into micro-batches already";
    FailureOr<int64_t> rows = nn::getBatchRows(func);
    if (failed(rows))
      return failure();
    if (count > *rows)
      return func.emitOpError("has batches of ")
             << *rows << " rows, too few for " << count.getValue() << " micro-batches";
    auto plan = MicrobatchPlan::build(func, *rows, count);
    if (failed(plan))
      return failure();
    return Splitter(func, std::move(*plan), *rows, count).run();
  }
};

} // namespace
