// dist-optimize-collectives: fewer and earlier collectives.
#include "Causes.h"
#include "JointReductions.h"
#include "OpOrder.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_OPTIMIZECOLLECTIVESPASS
#include "shoal/passes/ShoalDist.h.inc"

namespace {

/// From a tensor to a tensor: no message, barrier or future. What is waited for apart says itself when it starts.
bool isPlainCollective(Operation *op) {
  return isTensorCollective(op) && isa<RankedTensorType>(op->getResult(0).getType());
}

/// What runs beside the computation when it starts early: collectives that communicate, and the buckets that they read.
bool startsEarly(Operation *op) {
  // Its operand may have been ready long before: it stands where it is wanted.
  if (isFetch(op))
    return false;
  return isa<PackOp>(op) || (isPlainCollective(op) && cast<CollectiveOpInterface>(op).communicates());
}

/// `op` stands for `other`, too.
void addReason(Operation *op, Operation *other) {
  if (Attribute reason = mergeReasons(op->getAttr("reason"), other->getAttr("reason")))
    op->setAttr("reason", reason);
}

// Equal collectives become one.

/// Whether two collectives may be one, of whatever layers. Not of two stages: they are run by different ranks.
bool areAlike(Operation *a, Operation *b) {
  return doTheSame(a, b, [](StringRef name) {
    return name == DistDialect::kShardingsAttr || name == DistDialect::kGlobalsAttr || name == origin::kLayer;
  });
}

bool mergeEqual(Operation *op, Retired &retired) {
  if (!isPlainCollective(op) || op->hasAttr(DistDialect::kFetchAttr))
    return false;
  for (Operation *other : llvm::make_early_inc_range(op->getOperand(0).getUsers()))
    if (other != op && other->getBlock() == op->getBlock() && op->isBeforeInBlock(other) &&
        op->getOperands() == other->getOperands() && areAlike(op, other)) {
      other->replaceAllUsesWith(op);
      addReason(op, other);
      if (!op->hasAttr(DistDialect::kGlobalsAttr))
        copyAttr(other, op, DistDialect::kGlobalsAttr);
      retired.add(other);
      return true;
    }
  return false;
}

// Reductions.

/// all_reduce whose only user slices it: a reduce_scatter, and an all_reduce of the shard over the
/// axes that are not sliced.
bool scatterReduced(Operation *op, Retired &retired) {
  auto slice = dyn_cast<AllSliceOp>(op);
  auto reduce = slice ? slice.getInput().getDefiningOp<AllReduceOp>() : nullptr;
  if (!reduce || !reduce->hasOneUse() || reduce->getBlock() != op->getBlock())
    return false;
  SmallVector<StringAttr> rest;
  for (StringAttr axis : reduce.getAxes().getAxes())
    if (!slice.getAxes().contains(axis))
      rest.push_back(axis);
  if (rest.size() + slice.getAxes().getAxes().size() != reduce.getAxes().getAxes().size())
    return false;
  OpBuilder b(slice);
  Attribute reason = mergeReasons(reduce.getReasonAttr(), slice.getReasonAttr());
  Operation *last =
      b.create<ReduceScatterOp>(slice.getLoc(), slice.getType(), slice.getAxes(), reduce.getKind(),
                                slice.getDim(), reduce.getInput(), reason);
  copyPositions(reduce, last);
  if (!rest.empty()) {
    copyAttr(slice, last, DistDialect::kShardingsAttr);
    copyOrigin(slice, last);
    last = b.create<AllReduceOp>(slice.getLoc(), slice.getType(),
                                 AxesAttr::get(op->getContext(), rest), reduce.getKind(),
                                 last->getResult(0), reduce.getReasonAttr());
    copyPositions(reduce, last);
  }
  copyTags(slice, last);
  slice->replaceAllUsesWith(last);
  retired.add(slice);
  retired.add(reduce);
  return true;
}

/// The reduction of partial sums, scattered or not, that makes a value for this use alone.
Operation *getReduction(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !op->hasOneUse())
    return nullptr;
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getKind() == ReduceKindAttrEnum::sum ? op : nullptr;
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return scatter.getKind() == ReduceKindAttrEnum::sum ? op : nullptr;
  return nullptr;
}

/// An add of two values of its own type.
nn::AddOp getPlainAdd(Operation *op) {
  auto add = dyn_cast_or_null<nn::AddOp>(op);
  return add && add.getLhs().getType() == add.getType() && add.getRhs().getType() == add.getType() ? add
                                                                                                  : nn::AddOp();
}

/// The add, among those that make `value` for this use alone, that adds a reduction like `reduction`; its way
/// down to there, itself last.
SmallVector<nn::AddOp> findAlikeBelow(Value value, Operation *reduction) {
  constexpr unsigned kTop = ~0u;
  SmallVector<std::pair<nn::AddOp, unsigned>> visited; // with the number of the add that reads it
  SmallVector<unsigned> work;
  auto push = [&](Value next, unsigned reader) {
    nn::AddOp add = getPlainAdd(next.getDefiningOp());
    if (!add || !add->hasOneUse() || add->getBlock() != reduction->getBlock())
      return;
    work.push_back(visited.size());
    visited.push_back({add, reader});
  };
  push(value, kTop);
  while (!work.empty()) {
    unsigned at = work.pop_back_val();
    nn::AddOp add = visited[at].first;
    for (Value operand : add->getOperands()) {
      Operation *other = getReduction(operand);
      if (!other || !areAlike(other, reduction))
        continue;
      SmallVector<nn::AddOp> way;
      for (unsigned on = at; on != kTop; on = visited[on].second)
        way.push_back(visited[on].first);
      std::reverse(way.begin(), way.end());
      return way;
    }
    for (Value operand : add->getOperands())
      push(operand, at);
  }
  return {};
}

/// A sum of reductions is the reduction of a sum: of both operands of an add, or of one and of another one that
/// is added below it. Cotangents are summed in the order in which they are made, the reduced between the whole.
bool reduceSum(Operation *op, Retired &retired) {
  nn::AddOp add = getPlainAdd(op);
  if (!add || add.getLhs() == add.getRhs())
    return false;
  for (unsigned side : {0, 1}) {
    Operation *mine = getReduction(add->getOperand(side));
    if (!mine || mine->getBlock() != op->getBlock())
      continue;
    Value rest = add->getOperand(1 - side);
    Operation *other = getReduction(rest);
    bool isDirect = other && other->getBlock() == op->getBlock() && areAlike(mine, other);
    SmallVector<nn::AddOp> way;
    if (!isDirect) {
      way = findAlikeBelow(rest, mine);
      if (way.empty())
        continue;
      for (unsigned i : {0, 1})
        if (Operation *found = getReduction(way.back()->getOperand(i)); found && areAlike(found, mine)) {
          other = found;
          way.back().replaceAllUsesWith(way.back()->getOperand(1 - i));
          break;
        }
    }
    OpBuilder builder(op);
    auto sum = builder.create<nn::AddOp>(op->getLoc(), other->getOperand(0), mine->getOperand(0));
    copyAttr(mine, sum, DistDialect::kShardingsAttr);
    copyOrigin(op, sum);
    Operation *reduced = builder.clone(*other);
    addReason(reduced, mine);
    reduced->setOperand(0, sum);
    reduced->removeAttr(DistDialect::kGlobalsAttr);
    if (isDirect) {
      copyTags(op, reduced);
      op->replaceAllUsesWith(reduced);
      retired.add(op);
    } else {
      // Sums between are no values of the global program any more.
      for (nn::AddOp between : way)
        between->removeAttr(DistDialect::kGlobalsAttr);
      add->setOperand(side, reduced->getResult(0));
      retired.add(way.back());
    }
    retired.add(mine);
    retired.add(other);
    return true;
  }
  return false;
}

/// An all_reduce that a micro-batch region yields is done once, on the sum.
bool reduceOutside(Operation *op, Retired &retired) {
  auto accumulate = dyn_cast<AccumulateOp>(op);
  if (!accumulate)
    return false;
  Operation *yield = accumulate.getBody().front().getTerminator();
  bool changed = false;
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    auto reduce = value.getDefiningOp<AllReduceOp>();
    if (!reduce || reduce.getKind() != ReduceKindAttrEnum::sum || !reduce->hasOneUse() ||
        reduce->getBlock() != yield->getBlock())
      continue;
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    Value result = op->getResult(i);
    auto outside = b.create<AllReduceOp>(reduce.getLoc(), result.getType(), reduce.getAxes(),
                                         reduce.getKind(), result, reduce.getReasonAttr());
    copyPositions(reduce, outside);
    copyOrigin(reduce, outside);
    // What is kept over micro-batches is what goes into it, and counted as that.
    copyForeignAttrs(reduce, outside);
    if (Operation *kept = reduce.getInput().getDefiningOp(); kept && !kept->hasAttr(exec::ExecDialect::kClassAttr))
      copyAttr(reduce, kept, exec::ExecDialect::kClassAttr);
    result.replaceAllUsesExcept(outside, outside);
    if (ShardingAttr rest = getSharding(result))
      setSharding(outside, rest);
    if (auto tags = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr)) {
      // Before it, the value is partial over the axes.
      auto tag = cast<GlobalAttr>(tags[i]);
      ShardingAttr sharding = tag.getSharding();
      SmallVector<StringAttr> axes(sharding.getUnreducedAxes());
      llvm::append_range(axes, reduce.getAxes().getAxes());
      SmallVector<Attribute> changedTags(tags.begin(), tags.end());
      changedTags[i] = GlobalAttr::get(op->getContext(), tag.getId(), tag.getType(),
                                       sharding.withUnreduced(ReduceKindAttrEnum::sum, axes));
      op->setAttr(DistDialect::kGlobalsAttr, b.getArrayAttr(changedTags));
      outside->setAttr(DistDialect::kGlobalsAttr, b.getArrayAttr(tags[i]));
    }
    yield->setOperand(i, reduce.getInput());
    retired.add(reduce);
    changed = true;
  }
  return changed;
}

// Overlap.

/// Moves every collective up to where its operands are ready. Collectives keep their order among
/// those that become ready together, and none passes a message, a barrier or another effect.
void startEarly(Block &block) {
  OpOrder order;
  for (Operation &op : block)
    order.append(&op);
  Operation *fence = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (staysInPlace(&op))
      fence = &op;
    if (!startsEarly(&op))
      continue;
    Operation *ready = fence;
    for (Value operand : op.getOperands())
      ready = order.getLater(ready, operand.getDefiningOp());
    if (Operation *tail = order.getTail(ready))
      op.moveAfter(tail);
    else
      op.moveBefore(&block, block.begin());
    order.putBehind(&op, ready);
  }
}

struct OptimizeCollectivesPass : impl::OptimizeCollectivesPassBase<OptimizeCollectivesPass> {
  using OptimizeCollectivesPassBase::OptimizeCollectivesPassBase;

  void runOnOperation() override {
    // What a rewrite makes possible mostly lies behind it, in the same sweep.
    SmallVector<StringAttr> jointAxes;
    if (MeshOp mesh = lookupMesh(getOperation()))
      for (const std::string &axis : joint)
        llvm::append_range(jointAxes, resolveAxis(mesh.getMesh(), axis));
    while (sweep(jointAxes)) {
    }
    // What a plan computes for nobody is communicated for nobody.
    for (auto func : getOperation().getOps<FunctionOpInterface>())
      for (Block &block : func.getFunctionBody())
        eraseUnread(block);
    if (!overlap)
      return;
    SmallVector<Block *> blocks;
    getOperation().walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blocks.push_back(&block);
    });
    for (Block *block : blocks)
      startEarly(*block);
  }

private:
  /// Rewrites every op, in program order, as long as a rewrite applies to it.
  bool sweep(ArrayRef<StringAttr> jointAxes) {
    bool changed = false;
    Retired retired;
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      while (op->getBlock() && (mergeEqual(op, retired) || scatterReduced(op, retired) ||
                                reduceSum(op, retired) || reduceBehindMask(op, jointAxes, retired) ||
                                reduceBehindPack(op, jointAxes, retired) ||
                                reduceJointly(op, jointAxes, retired) || reduceOutside(op, retired)))
        changed = true;
    return changed;
  }
};

} // namespace
} // namespace shoal::dist
