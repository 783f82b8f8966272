// nn-seed: random ops draw from the seed of the run and the step they are in.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "ModelRewriter.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Interfaces/BatchDims.h"
#include "shoal/Support/SignatureEdit.h"

namespace shoal::nn {
#define GEN_PASS_DEF_SEEDPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

static LogicalResult checkIds(ArrayRef<RandomOpInterface> ops) {
  llvm::DenseMap<int64_t, Operation *> seen;
  for (RandomOpInterface op : ops) {
    auto [at, isNew] = seen.try_emplace(op.getRandomId(), op);
    if (isNew)
      continue;
    auto diag = op->emitOpError() << "id must differ from those of the model's other random ops, got: "
                                  << op.getRandomId();
    diag.attachNote(at->second->getLoc()) << "which draws the same numbers here";
    return diag;
  }
  return success();
}

/// In a micro-batch: makes the op one on a part of the batch. What does not hang on the micro-batch is
/// drawn once for all of them.
static LogicalResult setPart(RandomOpInterface op, Value microbatch, const BatchDims &batch, int64_t count) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value input = op->getOperand(0);
  if (Operation *lost = batch.getLostAt(input)) {
    auto diag = op->emitOpError() << "draws for rows of a micro-batch that cannot be followed to the whole batch";
    diag.attachNote(lost->getLoc()) << "lost in '" << lost->getName() << "'";
    return diag;
  }
  SmallVector<int64_t> global(type.getShape());
  int64_t stride = 1, size = 0;
  for (unsigned dim = type.getRank(); dim-- > 0;) {
    if (batch.getInner(input, dim) != 0) {
      size = stride * global[dim];
      global[dim] *= count;
    }
    stride *= global[dim];
  }
  if (size == 0)
    return success();
  OpBuilder builder(op);
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  Value elements = builder.create<ConstantOp>(op.getLoc(), scalar, DenseIntElementsAttr::get(scalar, size));
  Value index = builder.create<ReshapeOp>(op.getLoc(), scalar, microbatch);
  op.setPart(builder.create<MulOp>(op.getLoc(), index, elements), global);
  return success();
}

/// The ops of a sum over micro-batches; one more input holds the number of each micro-batch.
static LogicalResult setParts(dist::AccumulateOp accumulate) {
  Block &body = accumulate.getBody().front();
  SmallVector<RandomOpInterface> ops(body.getOps<RandomOpInterface>());
  int64_t count = accumulate.getMicrobatches();
  if (ops.empty() || count == 1)
    return success();
  std::optional<BatchDims> batch;
  for (BlockArgument argument : body.getArguments()) {
    int64_t rows = cast<RankedTensorType>(argument.getType()).getDimSize(0);
    if (rows == 1)
      return ops.front()->emitOpError() << "draws in a micro-batch of one row, whose dimension cannot be told from "
                                           "others of size 1: take fewer micro-batches than "
                                        << count;
    if (!batch)
      batch.emplace(rows);
    batch->setInner(argument, 0, 1);
  }
  if (!batch)
    return success();
  for (Operation &op : body.without_terminator())
    if (auto sharded = dyn_cast<ShardingRuleOpInterface>(op))
      batch->propagate(&op, sharded.getShardingRule());

  OpBuilder builder(accumulate);
  Type i64 = builder.getI64Type();
  Value numbers = builder.create<IotaOp>(accumulate.getLoc(), RankedTensorType::get({count}, i64),
                                         builder.getI64IntegerAttr(0));
  accumulate.getInputsMutable().append(numbers);
  if (auto shardings = accumulate->getAttrOfType<ArrayAttr>(dist::DistDialect::kArgShardingsAttr)) {
    SmallVector<Attribute> all(shardings.begin(), shardings.end());
    auto mesh = cast<dist::ShardingAttr>(all.front()).getMesh();
    all.push_back(dist::ShardingAttr::getReplicated(mesh, 1));
    accumulate->setAttr(dist::DistDialect::kArgShardingsAttr, builder.getArrayAttr(all));
  }
  Value microbatch = body.addArgument(RankedTensorType::get({1}, i64), accumulate.getLoc());
  for (RandomOpInterface op : ops)
    if (failed(setPart(op, microbatch, *batch, count)))
      return failure();
  return success();
}

static LogicalResult seed(func::FuncOp model) {
  SmallVector<RandomOpInterface> ops;
  model.walk([&](RandomOpInterface op) {
    if (!op.isSeeded())
      ops.push_back(op);
  });
  if (ops.empty())
    return success();
  if (failed(checkIds(ops)))
    return failure();
  {
    SignatureEdit signature(model);
    auto argument = [&](ArgRole role, StringRef name) -> Value {
      if (std::optional<unsigned> index = findArg(model, role))
        return model.getArgument(*index);
      Builder b(model.getContext());
      return signature.addArgument(RankedTensorType::get({}, b.getI64Type()), name, b.getUnitAttr());
    };
    Value seed = argument(ArgRole::Seed, NNDialect::kSeedAttr), step = argument(ArgRole::Step, NNDialect::kStepAttr);
    for (RandomOpInterface op : ops)
      op.setSeed(seed, step);
  }
  for (auto accumulate : llvm::make_early_inc_range(model.getOps<dist::AccumulateOp>()))
    if (failed(setParts(accumulate)))
      return failure();
  return success();
}

namespace {

struct SeedPass : shoal::nn::impl::SeedPassBase<SeedPass> {
  void runOnOperation() override {
    auto models = getModels(getOperation());
    if (failed(models))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(seed(model)))
        return signalPassFailure();
  }
};

} // namespace
