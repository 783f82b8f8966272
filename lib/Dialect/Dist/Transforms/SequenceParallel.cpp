// dist-sequence-parallel: between the products that tensor parallelism shards, the tensor axis shards the sequence.
//
// The residual stream is every value with a dimension of the sequence and one of the hidden size that is not sharded
// as heads, features or vocabulary are. An op that computes on a shard of those needs the whole sequence: what it
// reads of the stream is gathered before it, what it adds to the stream is scattered behind it, by a dist.reshard
// each. All other ops of the stream, norms, dropout and residual sums, see their part of the tokens only. A parameter
// that has a row for each token, as a table of positions, lies as the stream that it is added to.
#include "SequenceDims.h"
#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Origin.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace shoal::dist {
#define GEN_PASS_DEF_SEQUENCEPARALLELPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

class SequenceParallel {
public:
  SequenceParallel(func::FuncOp func, MeshOp mesh, ArrayRef<StringAttr> axes, bool keepGathered, DimGroups &&groups)
      : func(func), mesh(mesh), symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())), axes(axes),
        keepGathered(keepGathered),
        groups(std::move(groups)), forward(findForwardOps(func)), origins(findOrigins(func)),
        why(getStrategyCause(func.getContext(), kSequenceParallel, "the residual stream by sequence")) {
    unsigned count = this->groups.getNumGroups();
    for (llvm::BitVector *set : {&sharded, &batch, &sequence, &hidden})
      set->resize(count);
  }

  /// Annotates the stream, if the function has one. Diagnoses one whose sequence is not one dimension.
  LogicalResult run();
  bool isFound() const { return found; }
  /// Whether the axis shards a parameter, so that there are products to lie between.
  bool hasShardedParameter() const { return sharded.any(); }

private:
  void findDims();
  void findStreamDims(const DimGroups::Entry &entry);
  void findRegionOps();
  void cutAt(Value value);
  void shardParameters();

  std::optional<unsigned> findDim(Value value, const llvm::BitVector &set) const;
  bool isStream(Value value) const {
    return findDim(value, sequence) && findDim(value, hidden) && !findDim(value, sharded);
  }
  bool readsStream(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return isStream(operand); });
  }
  bool isSharded(const DimGroups::Entry &entry) const {
    return llvm::any_of(entry.groups, [&](unsigned group) { return group != DimGroups::kNone && sharded.test(group); });
  }

  /// The value with its sequence sharded, or whole; other dimensions stay open.
  ShardingAttr toSharding(Value value, bool isShardedAlong) const;
  /// Lays `value`, which is `of` the stream or its shard, so.
  ReshardOp reshard(OpBuilder &builder, Value value, Value of, bool isShardedAlong, Operation *cause);

  func::FuncOp func;
  MeshOp mesh;
  FlatSymbolRefAttr symbol;
  ArrayRef<StringAttr> axes;
  SmallVector<StringAttr> context; // what shards the sequence everywhere
  bool keepGathered;
  DimGroups groups;
  DenseSet<Operation *> forward;
  Origins origins;
  CauseAttr why;
  // Groups of dimensions: sharded over the axis by parameters; of the batch; of the stream.
  llvm::BitVector sharded, batch, sequence, hidden;
  /// Ops that need the whole sequence of what they read of the stream.
  DenseSet<Operation *> region;
  /// The products by which the groups of `sequence` were found, one each.
  SmallVector<Operation *, 1> saidBy;
  bool found = false;
};

std::optional<unsigned> SequenceParallel::findDim(Value value, const llvm::BitVector &set) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  for (int64_t d = 0; type && d < type.getRank(); ++d)
    if (unsigned group = groups.find(value, d); group != DimGroups::kNone && set.test(group))
      return d;
  return std::nullopt;
}

// The dimensions of a product say what they are: of a parameter that the axis shards the other ones are the hidden
// size; of the activation those that the parameter has not are the batch and the sequence.
void SequenceParallel::findStreamDims(const DimGroups::Entry &entry) {
  if (!isContraction(entry.rule) || !isSharded(entry))
    return;
  for (auto [operand, tensor] : llvm::zip_equal(entry.op->getOperands(), entry.rule.operands)) {
    if (!origins.parameters.contains(operand))
      continue;
    bool isRow = llvm::any_of(llvm::enumerate(entry.groups), [&](auto item) {
      return item.value() != DimGroups::kNone && sharded.test(item.value()) &&
             entry.rule.factors[item.index()].kind == FactorKind::Reduction;
    });
    for (auto [f, group] : llvm::enumerate(entry.groups)) {
      if (group == DimGroups::kNone)
        continue;
      bool isReduced = entry.rule.factors[f].kind == FactorKind::Reduction;
      if (holds(tensor, f) && isReduced != isRow && !sharded.test(group))
        hidden.set(group);
    }
    // The first that remains, in the order of the result.
    for (ArrayRef<unsigned> dim : entry.rule.results.front())
      for (unsigned f : dim)
        if (unsigned group = entry.groups[f];
            !holds(tensor, f) && group != DimGroups::kNone && !batch.test(group) && !sharded.test(group)) {
          if (!sequence.test(group))
            saidBy.push_back(entry.op);
          sequence.set(group);
          return;
        }
  }
}

void SequenceParallel::findDims() {
  for (BlockArgument argument : func.getArguments()) {
    auto mark = [&](llvm::BitVector &set, unsigned d) {
      if (unsigned group = groups.find(argument, d); group != DimGroups::kNone)
        set.set(group);
    };
    if (nn::isBatchedInput(func, argument.getArgNumber()))
      mark(batch, nn::getBatchDim(func, argument.getArgNumber()));
    if (nn::getArgRole(func, argument.getArgNumber()) != nn::ArgRole::Param)
      continue;
    // What the same strategy has sharded in training is of the stream, in evaluation, too.
    DictionaryAttr causes = getWhy(argument);
    auto isOfStream = [&](StringAttr axis) {
      return llvm::any_of(listCauses(findCauses(causes, axis)), [](CauseAttr cause) {
        return cause.getStrategy() && cause.getStrategy().getValue() == kSequenceParallel;
      });
    };
    if (ShardingAttr sharding = getSharding(argument))
      for (auto [d, dim] : llvm::enumerate(sharding.getDims()))
        if (llvm::any_of(axes, [&, dim = dim](StringAttr axis) {
              return llvm::is_contained(dim.getAxes(), axis) && !isOfStream(axis);
            }))
          mark(sharded, d);
  }
  // A weight that a hand shards along the hidden size is gathered or reduced where it is used; the stream has the axis
  // for its sequence.
  for (const DimGroups::Entry &entry : groups.getEntries())
    for (auto [f, group] : llvm::enumerate(entry.groups))
      if (group != DimGroups::kNone && forward.contains(entry.op) && needsWhole(entry.op, entry.rule.factors[f]))
        sharded.reset(group);
  for (const DimGroups::Entry &entry : groups.getEntries())
    if (forward.contains(entry.op))
      findStreamDims(entry);
}

/// Ops on sharded dimensions; products that read what such a product reads (keys and values of fewer heads than the
/// axis has devices); and those whose result joins the stream though nothing of it comes from there.
void SequenceParallel::findRegionOps() {
  DenseSet<Value> gathered;
  for (const DimGroups::Entry &entry : groups.getEntries())
    if (isSharded(entry)) {
      region.insert(entry.op);
      for (Value operand : entry.op->getOperands())
        if (isContraction(entry.rule) && isStream(operand))
          gathered.insert(operand);
    }
  for (const DimGroups::Entry &entry : groups.getEntries()) {
    if (!isContraction(entry.rule))
      continue;
    bool sharesInput = llvm::any_of(entry.op->getOperands(), [&](Value v) { return gathered.contains(v); });
    bool entersStream =
        !readsStream(entry.op) && llvm::any_of(entry.op->getResults(), [&](Value v) { return isStream(v); });
    if (sharesInput || entersStream)
      region.insert(entry.op);
  }
}

ShardingAttr SequenceParallel::toSharding(Value value, bool isShardedAlong) const {
  SmallVector<StringAttr> along(context);
  if (isShardedAlong)
    llvm::append_range(along, axes);
  return shardAlong(symbol, value, *findDim(value, sequence), along);
}

ReshardOp SequenceParallel::reshard(OpBuilder &builder, Value value, Value of, bool isShardedAlong, Operation *cause) {
  StringRef what = isShardedAlong ? "the residual stream behind " : "the whole sequence for ";
  auto op = builder.create<ReshardOp>(cause->getLoc(), value, toSharding(of, isShardedAlong),
                                      builder.getStringAttr(what + cause->getName().getStringRef()));
  if (isShardedAlong)
    addCause(op, axes, why);
  copyOrigin(cause, op);
  return op;
}

/// Puts the changes of layout around a value of the stream.
void SequenceParallel::cutAt(Value value) {
  Operation *producer = value.getDefiningOp();
  bool isForward = forward.contains(producer);
  SmallVector<OpOperand *> ahead, behind; // uses that need the whole sequence: in the pass that made it, and later
  SmallVector<OpOperand *> others;
  for (OpOperand &use : value.getUses()) {
    bool needsWhole = region.contains(use.getOwner());
    bool isLater = isForward && !forward.contains(use.getOwner());
    (needsWhole ? isLater ? behind : ahead : others).push_back(&use);
  }
  OpBuilder builder(func.getContext());
  Value shard = value;
  if (region.contains(producer)) {
    builder.setInsertionPointAfter(producer);
    shard = reshard(builder, value, value, /*isShardedAlong=*/true, producer);
    for (OpOperand *use : others)
      use->set(shard);
  } else if ((isForward || producer->hasAttr(nn::NNDialect::kRecomputeAttr)) && !getSharding(value)) {
    setSharding(value, toSharding(value, /*isShardedAlong=*/true));
    addCause(producer, axes, why);
  }
  auto gather = [&](ArrayRef<OpOperand *> uses) {
    if (uses.empty())
      return ReshardOp();
    Operation *first = uses.front()->getOwner();
    for (OpOperand *use : uses)
      if (use->getOwner()->isBeforeInBlock(first))
        first = use->getOwner();
    builder.setInsertionPoint(first);
    // The shard is a new value, of whose dimensions no group tells.
    ReshardOp whole = reshard(builder, shard, value, /*isShardedAlong=*/false, first);
    for (OpOperand *use : uses)
      use->set(whole);
    return whole;
  };
  if (keepGathered || ahead.empty()) {
    llvm::append_range(ahead, behind);
    gather(ahead);
    return;
  }
  gather(ahead);
  if (ReshardOp again = gather(behind))
    again->setAttr(DistDialect::kRefetchAttr, builder.getUnitAttr());
}

/// What is part of the stream itself, unless a hand has said how it lies: its gradient lies so, too.
void SequenceParallel::shardParameters() {
  ArgAnnotator arguments(func, mesh);
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (nn::getArgRole(func, index) != nn::ArgRole::Param || arguments.get(index) || !isStream(argument))
      continue;
    bool isReadAsStream = llvm::all_of(argument.getUsers(), [&](Operation *user) {
      auto isOfStream = [&](Value result) { return isStream(result); };
      return !forward.contains(user) || (!region.contains(user) && llvm::all_of(user->getResults(), isOfStream));
    });
    if (isReadAsStream)
      arguments.shard(index, *findDim(argument, sequence), axes, why);
  }
}

LogicalResult SequenceParallel::run() {
  findDims();
  if (sequence.none() || hidden.none())
    return success();
  if (saidBy.size() > 1) {
    InFlightDiagnostic diag =
        saidBy[1]->emitError("sequence parallelism needs one dimension for the sequence through the whole residual "
                             "stream, and the first dimension beside the batch is another one here");
    diag.attachNote(saidBy[0]->getLoc()) << "than here";
    return diag;
  }
  findRegionOps();
  GroupAxes known(func, groups);
  for (unsigned group : sequence.set_bits())
    for (StringAttr axis : known.get(group))
      if (!llvm::is_contained(axes, axis) && !llvm::is_contained(context, axis))
        context.push_back(axis); // in evaluation, parameters have what training gave the stream, too
  SmallVector<Value> stream;
  for (Operation &op : func.front().without_terminator())
    for (Value result : op.getResults())
      if (isStream(result))
        stream.push_back(result);
  shardParameters();
  for (Value value : stream)
    cutAt(value);
  found = !stream.empty();
  return success();
}

struct SequenceParallelPass : dist::impl::SequenceParallelPassBase<SequenceParallelPass> {
  using Base::Base;

  void runOnOperation() override {
    auto mesh = getMeshWithAxes(getOperation(), {axis}, "sequence parallelism");
    if (failed(mesh))
      return signalPassFailure();
    SmallVector<StringAttr> axes = resolveAxis(mesh->getMesh(), axis);
    bool found = false, isSharded = false;
    auto annotate = [&](func::FuncOp func, DimGroups &&groups) {
      SequenceParallel strategy(func, *mesh, axes, keepGathered, std::move(groups));
      if (failed(strategy.run()))
        return failure();
      found |= strategy.isFound();
      isSharded |= strategy.hasShardedParameter();
      return success();
    };
    if (failed(forEachModel(getOperation(), annotate)))
      return signalPassFailure();
    if (found)
      return;
    if (!isSharded)
      emitError(getOperation().getLoc(), "sequence parallelism over \"")
          << axis << "\" lies between products with parameters that this axis shards, and it shards none: add "
          << kTensorParallel << " or annotate parameters";
    else
      emitError(getOperation().getLoc(), "sequence parallelism over \"")
          << axis << "\" finds no residual stream: no product with a parameter that the axis shards has a dimension "
          << "for the sequence beside the batch";
    signalPassFailure();
  }
};

} // namespace
