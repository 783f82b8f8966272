// Reductions over the axes of two runs become one; see JointReductions.h.
#include "JointReductions.h"

#include "Bundles.h"
#include "Causes.h"
#include "PlanMesh.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace shoal::dist {

static bool areAllOf(AxesAttr axes, ArrayRef<StringAttr> of) {
  return llvm::all_of(axes.getAxes(), [&](StringAttr axis) { return llvm::is_contained(of, axis); });
}
static bool areDisjoint(AxesAttr a, AxesAttr b) {
  return llvm::none_of(a.getAxes(), [&](StringAttr axis) { return b.contains(axis); });
}

/// A sum over `joint` axes only.
static AllReduceOp getJointSum(Value value, ArrayRef<StringAttr> joint) {
  auto reduce = value.getDefiningOp<AllReduceOp>();
  bool isJoint = reduce && reduce.getKind() == ReduceKindAttrEnum::sum && areAllOf(reduce.getAxes(), joint);
  return isJoint ? reduce : AllReduceOp();
}

AllReduceOp findJointReduction(Value gradient, ArrayRef<StringAttr> joint) {
  if (auto accumulate = gradient.getDefiningOp<AccumulateOp>())
    gradient =
        accumulate.getBody().front().getTerminator()->getOperand(cast<OpResult>(gradient).getResultNumber());
  return getJointSum(gradient, joint);
}

// Before packing.

/// The reduction of a result of micro-batches is done by each of them.
static void reduceInside(AllReduceOp reduce) {
  auto result = cast<OpResult>(reduce.getInput());
  auto accumulate = cast<AccumulateOp>(result.getOwner());
  Operation *yield = accumulate.getBody().front().getTerminator();
  unsigned index = result.getResultNumber();
  OpBuilder b(yield);
  Operation *inside = b.clone(*reduce);
  inside->setOperand(0, yield->getOperand(index));
  inside->removeAttr(DistDialect::kGlobalsAttr);
  yield->setOperand(index, inside->getResult(0));
  if (auto tags = accumulate->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr)) {
    // It is no longer partial over the axes.
    auto tag = cast<GlobalAttr>(tags[index]);
    SmallVector<StringAttr> rest;
    for (StringAttr axis : tag.getSharding().getUnreducedAxes())
      if (!reduce.getAxes().contains(axis))
        rest.push_back(axis);
    SmallVector<Attribute> changed(tags.begin(), tags.end());
    changed[index] = GlobalAttr::get(tag.getContext(), tag.getId(), tag.getType(),
                                     tag.getSharding().withUnreduced(ReduceKindAttrEnum::sum, rest));
    accumulate->setAttr(DistDialect::kGlobalsAttr, b.getArrayAttr(changed));
  }
  reduce.replaceAllUsesWith(Value(result));
  reduce.erase();
}

void reduceWhereMade(func::FuncOp func, MeshAttr mesh, ArrayRef<StringAttr> axes, ArrayRef<StringAttr> joint) {
  Block &block = func.getBody().front();
  // Gradients that are reduced per micro-batch over these axes.
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    auto flat = func.getResultAttrOfType<FlatAttr>(i, DistDialect::kFlatAttr);
    AllReduceOp reduce = getJointSum(value, joint);
    if (flat && flat.getPerUse() && isFlatOver(flat, mesh, axes) && reduce && reduce.getInput().hasOneUse() &&
        reduce.getInput().getDefiningOp<AccumulateOp>())
      reduceInside(reduce);
  }
  llvm::DenseMap<Operation *, Operation *> lastBehind;
  for (auto reduce : llvm::make_early_inc_range(block.getOps<AllReduceOp>())) {
    Operation *maker = reduce.getInput().getDefiningOp();
    ShardingAttr sharding = getSharding(reduce);
    bool isPartial = sharding && llvm::any_of(sharding.getUnreducedAxes(), [&](StringAttr axis) {
                       return llvm::is_contained(axes, axis);
                     });
    if (!maker || !isPartial || !getJointSum(reduce, joint))
      continue;
    Operation *&last = lastBehind.try_emplace(maker, maker).first->second;
    reduce->moveAfter(last);
    last = reduce;
  }
}

// Behind packing.

/// `[{"data"}] sum{"context"} -> [{"data"}]`: of a value of a rank, `dim` of which is sharded over `shards`.
static std::string describeSum(int64_t rank, unsigned dim, ArrayRef<StringAttr> shards, AxesAttr axes) {
  std::string lies = "[";
  for (int64_t d = 0; d < rank; ++d)
    lies += (d ? ", " : "") + printAxes(d == dim ? shards : ArrayRef<StringAttr>());
  lies += "]";
  return lies + " sum" + printAxes(axes.getAxes()) + " -> " + lies;
}

/// Who asks for `asker`, for the causes of `of`; by hand the words of both.
static Attribute makeReason(Attribute asker, Attribute of, const Twine &change) {
  auto mine = dyn_cast_or_null<ReasonAttr>(asker), theirs = dyn_cast_or_null<ReasonAttr>(of);
  if (!mine || !theirs)
    return mergeReasons(asker, of);
  return ReasonAttr::get(of.getContext(), mine.getAsker(), mine.getLayer(), StringAttr::get(of.getContext(), change),
                         theirs.getCauses());
}

/// Of a reduction that does the work of two, one after the other.
static Attribute joinReasons(Attribute first, Attribute second) {
  auto mine = dyn_cast_or_null<ReasonAttr>(first), theirs = dyn_cast_or_null<ReasonAttr>(second);
  Attribute both = mergeReasons(second, first);
  if (!mine || !theirs || !mine.getChange() || !theirs.getChange())
    return both;
  return makeReason(second, both, mine.getChange().getValue() + ", then " + theirs.getChange().getValue());
}

/// Whether two collectives are run by the same devices for the same stage.
static bool runTogether(Operation *a, Operation *b) {
  return a->getBlock() == b->getBlock() && a->getAttr(DistDialect::kAtAttr) == b->getAttr(DistDialect::kAtAttr) &&
         a->getAttr(origin::kStage) == b->getAttr(origin::kStage);
}

/// The packs that read what `pack` does, all of parts that are summed alike, as `first` says how: a gradient that is
/// cut lies in two. Empty where one of them has another part, or something else reads a part.
static SmallVector<PackOp> findPacksOfSums(PackOp pack, ArrayRef<StringAttr> joint, AllReduceOp &first) {
  llvm::SetVector<Operation *> packs;
  packs.insert(pack);
  for (unsigned next = 0; next < packs.size(); ++next)
    for (Value input : cast<PackOp>(packs[next]).getInputs()) {
      if (matchPattern(input, m_AnyZeroFloat()))
        continue;
      AllReduceOp reduce = getJointSum(input, joint);
      if (!reduce)
        return {};
      first = first ? first : reduce;
      if (reduce.getAxes() != first.getAxes() || !runTogether(reduce, first))
        return {};
      for (Operation *user : reduce->getUsers()) {
        if (!isa<PackOp>(user) || user->getBlock() != reduce->getBlock())
          return {};
        packs.insert(user);
      }
    }
  return first ? llvm::map_to_vector(packs, [](Operation *op) { return cast<PackOp>(op); }) : SmallVector<PackOp>();
}

/// Whether a scalar is the same on all devices along axes.
static bool isUniform(Value value, AxesAttr axes) {
  if (!value || matchPattern(value, m_Constant()))
    return true;
  auto index = value.getDefiningOp<AxisIndexOp>();
  return index && areDisjoint(index.getAxes(), axes);
}

bool reduceBehindMask(Operation *op, ArrayRef<StringAttr> joint, Retired &retired) {
  auto mask = dyn_cast<nn::MaskOp>(op);
  AllReduceOp reduce = mask ? getJointSum(mask.getInput(), joint) : AllReduceOp();
  if (!reduce || !reduce->hasOneUse() || !runTogether(reduce, mask) || !mask.getFill().isZero() ||
      !isUniform(mask.getLimit(), reduce.getAxes()) || !isUniform(mask.getOffset(), reduce.getAxes()))
    return false;
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  mask.getInputMutable().assign(reduce.getInput());
  Operation *sum = b.clone(*reduce);
  sum->setOperand(0, mask);
  copyTags(mask, sum);
  mask->removeAttr(DistDialect::kGlobalsAttr);
  mask.getResult().replaceAllUsesExcept(sum->getResult(0), sum);
  retired.add(reduce);
  return true;
}

bool reduceBehindPack(Operation *op, ArrayRef<StringAttr> joint, Retired &retired) {
  auto pack = dyn_cast<PackOp>(op);
  AllReduceOp first;
  SmallVector<PackOp> packs = pack ? findPacksOfSums(pack, joint, first) : SmallVector<PackOp>();
  llvm::SetVector<Operation *> reductions;
  for (PackOp one : packs) {
    Attribute reason;
    SmallVector<Value> parts;
    for (Value input : one.getInputs()) {
      AllReduceOp reduce = getJointSum(input, joint);
      parts.push_back(reduce ? reduce.getInput() : input);
      if (!reduce)
        continue;
      reductions.insert(reduce);
      reason = mergeReasons(reason, reduce.getReasonAttr());
    }
    one.getInputsMutable().assign(parts);
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(one);
    reason = makeReason(reason, reason, describeSum(1, 0, {}, first.getAxes()));
    auto sum = b.create<AllReduceOp>(one.getLoc(), one.getType(), first.getAxes(), ReduceKindAttrEnum::sum,
                                     one.getResult(), reason);
    copyPositions(first, sum);
    copyAttr(one, sum, DistDialect::kShardingsAttr);
    copyAttr(one, sum, DistDialect::kGlobalsAttr);
    copyOrigin(one, sum);
    // Of other devices the bucket has other parts from here on.
    one->removeAttr(DistDialect::kGlobalsAttr);
    one.getResult().replaceAllUsesExcept(sum, sum);
  }
  for (Operation *reduce : reductions)
    retired.add(reduce);
  return !packs.empty();
}

/// The axes of both, in the order of the mesh.
static AxesAttr joinAxes(Operation *op, AxesAttr a, AxesAttr b) {
  SmallVector<StringAttr> axes;
  for (MeshAxisAttr axis : lookupMesh(op).getMesh().getAxes())
    if (a.contains(axis.getName()) || b.contains(axis.getName()))
      axes.push_back(axis.getName());
  return AxesAttr::get(op->getContext(), axes);
}

bool reduceJointly(Operation *op, ArrayRef<StringAttr> joint, Retired &retired) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || !isa<AllReduceOp, ReduceScatterOp>(op))
    return false;
  auto inner = op->getOperand(0).getDefiningOp<AllReduceOp>();
  AxesAttr axes = collective.getAxesAttr();
  if (!inner || !inner->hasOneUse() || !runTogether(inner, op) || inner.getKind() != *collective.getReduction() ||
      !areAllOf(inner.getAxes(), joint) || !areDisjoint(inner.getAxes(), axes))
    return false;
  OpBuilder b(op);
  Attribute reason = op->getAttr("reason");
  Operation *last;
  if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    auto shard = b.create<ReduceScatterOp>(op->getLoc(), scatter.getType(), axes, scatter.getKind(), scatter.getDim(),
                                           inner.getInput(), reason);
    copyPositions(op, shard);
    copyAttr(op, shard, DistDialect::kShardingsAttr);
    copyOrigin(op, shard);
    copyForeignAttrs(op, shard);
    std::string change = describeSum(scatter.getType().getRank(), scatter.getDim(), axes.getAxes(), inner.getAxes());
    last = b.create<AllReduceOp>(op->getLoc(), scatter.getType(), inner.getAxes(), inner.getKind(), shard,
                                 makeReason(reason, inner.getReasonAttr(), change));
  } else {
    last = b.create<AllReduceOp>(op->getLoc(), op->getResult(0).getType(), joinAxes(op, axes, inner.getAxes()),
                                 inner.getKind(), inner.getInput(), joinReasons(inner.getReasonAttr(), reason));
  }
  copyPositions(op, last);
  copyTags(op, last);
  op->replaceAllUsesWith(last);
  retired.add(op);
  retired.add(inner);
  return true;
}

} // namespace shoal::dist
