// Cuts the flat gradients of a group into buckets, and reads gradients out of them; see GradientRanges.h.
#include "GradientRanges.h"

#include "BucketCut.h"
#include "ForeignAttrs.h"
#include "JointReductions.h"
#include "PlanMesh.h"
#include "Reasons.h"

#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Support/Elements.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;

namespace shoal::dist {
namespace {

struct Gradient {
  Value value;
  std::string name;
  int64_t size() const { return cast<RankedTensorType>(value.getType()).getNumElements(); }
};

/// Gradients of one element type and of the same stages that are partial over the same axes, of which some are reduced
/// here, and have been reduced over the same joint axes.
struct Group {
  Type elementType;
  SmallVector<int64_t> stages;
  ArrayRef<StringAttr> unreduced;
  AxesAttr reduced; // over the joint axes, each gradient alone
  SmallVector<StringAttr> axes, rest;
  SmallVector<Gradient> gradients;
};

class Packer {
public:
  Packer(func::FuncOp func, MeshOp mesh, ArrayRef<StringAttr> axes, ArrayRef<StringAttr> joint, int64_t bucketBytes)
      : func(func), mesh(mesh), axes(axes), joint(joint), bucketBytes(bucketBytes) {}

  void run();

private:
  void collect(Value value, StringRef name);
  void reduceBeforeGathers();
  void pack(Group &group, int64_t index);
  std::string reason(const Group &group, ArrayRef<unsigned> members, int64_t bucket,
                     int64_t count) const;
  /// Ops that the gradients are computed from, and the ops of the gradients.
  void collectProducers();
  void replaceUses(Value gradient, Value reduced);

  func::FuncOp func;
  MeshOp mesh;
  ArrayRef<StringAttr> axes, joint;
  int64_t bucketBytes;
  SmallVector<Group, 0> groups;
  llvm::SetVector<Operation *> gathers; // of gradients, with the shards before
  DenseSet<Value> seen;
  DenseSet<Operation *> producers;
};

void Packer::collect(Value value, StringRef name) {
  // A shard is reduced before it is gathered over other axes: that sends less, and it may be a gradient itself.
  if (auto gather = value.getDefiningOp<AllGatherOp>()) {
    ShardingAttr whole = getSharding(value), shard = getSharding(gather.getInput());
    if (whole && shard && whole.getUnreducedAxes() == shard.getUnreducedAxes()) {
      gathers.insert(gather);
      return collect(gather.getInput(), name);
    }
  }
  ShardingAttr sharding = getSharding(value);
  if (!sharding || sharding.getUnreducedAxes().empty() || !value.getDefiningOp() ||
      sharding.getUnreducedKind() != ReduceKindAttrEnum::sum)
    return;
  // A sharded gradient is reduced where it lies.
  if (llvm::any_of(sharding.getDims(), [](DimShardingAttr dim) { return !dim.getAxes().empty(); }))
    return;
  ArrayRef<StringAttr> unreduced = sharding.getUnreducedAxes();
  auto isMine = [&](StringAttr axis) { return llvm::is_contained(axes, axis); };
  auto isOfJoint = [&](StringAttr axis) { return llvm::is_contained(joint, axis); };
  // What a later run packs is reduced over the joint axes there, too.
  bool isPackedLater = llvm::any_of(unreduced, [&](StringAttr axis) {
    return !isMine(axis) && !isOfJoint(axis) && mesh.getMesh().getSize({axis}) > 1;
  });
  SmallVector<StringAttr> mine, rest;
  for (StringAttr axis : unreduced)
    (isMine(axis) && !(isPackedLater && isOfJoint(axis)) ? mine : rest).push_back(axis);
  if (mesh.getMesh().getSize(mine) == 1 || !seen.insert(value).second)
    return;
  Type type = cast<RankedTensorType>(value.getType()).getElementType();
  SmallVector<int64_t> stages = findStages(value);
  // A bucket takes the reduction of what it holds behind it if all have it.
  AllReduceOp reduction = findJointReduction(value, joint);
  AxesAttr reduced = reduction ? reduction.getAxes() : AxesAttr();
  auto group = llvm::find_if(groups, [&](const Group &other) {
    return other.elementType == type && other.stages == stages && other.unreduced == unreduced &&
           other.reduced == reduced;
  });
  if (group == groups.end()) {
    groups.push_back({type, stages, unreduced, reduced, mine, rest, {}});
    group = &groups.back();
  }
  group->gradients.push_back({value, name.str()});
}

/// What shards are whole over, their gathers are too.
void Packer::reduceBeforeGathers() {
  for (Operation *gather : llvm::reverse(gathers)) { // one may be the shard of another
    ShardingAttr shard = getSharding(gather->getOperand(0)), whole = getSharding(gather->getResult(0));
    auto reduced = [&](ShardingAttr sharding) {
      SmallVector<StringAttr> rest;
      for (StringAttr axis : sharding.getUnreducedAxes())
        if (!llvm::is_contained(whole.getUnreducedAxes(), axis) || llvm::is_contained(shard.getUnreducedAxes(), axis))
          rest.push_back(axis);
      return sharding.withUnreduced(ReduceKindAttrEnum::sum, rest);
    };
    if (auto tags = gather->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr)) {
      auto tag = cast<GlobalAttr>(tags[0]);
      gather->setAttr(DistDialect::kGlobalsAttr,
                      ArrayAttr::get(gather->getContext(), GlobalAttr::get(gather->getContext(), tag.getId(),
                                                                           tag.getType(), reduced(tag.getSharding()))));
    }
    setSharding(gather->getResult(0), reduced(whole));
  }
}

void Packer::collectProducers() {
  SmallVector<Operation *> work;
  for (const Group &group : groups)
    for (const Gradient &gradient : group.gradients)
      work.push_back(gradient.value.getDefiningOp());
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!producers.insert(op).second)
      continue;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          work.push_back(def);
    });
  }
}

void Packer::replaceUses(Value gradient, Value reduced) {
  // What other gradients are computed from stays partial: a sum is a sum of parts.
  Block *block = gradient.getParentBlock();
  gradient.replaceUsesWithIf(reduced, [&](OpOperand &use) {
    Operation *user = block->findAncestorOpInBlock(*use.getOwner());
    return user && !isa<PackOp>(user) && !producers.contains(user);
  });
}

std::string Packer::reason(const Group &group, ArrayRef<unsigned> members, int64_t bucket,
                           int64_t count) const {
  SmallVector<StringRef> names;
  for (unsigned member : members)
    names.push_back(group.gradients[member].name);
  std::string text = listGradients(names);
  if (count > 1)
    text += ", bucket " + std::to_string(bucket) + " of " + std::to_string(count) + ",";
  SmallVector<StringAttr> axes = group.axes;
  if (group.reduced) {
    llvm::append_range(axes, group.reduced.getAxes());
    MeshAttr order = MeshOp(mesh).getMesh();
    llvm::sort(axes, [&](StringAttr a, StringAttr b) { return order.getAxisIndex(a) < order.getAxisIndex(b); });
  }
  return text + (members.size() == 1 ? " is a partial sum over " : " are partial sums over ") + printAxes(axes);
}

void Packer::pack(Group &group, int64_t index) {
  // Readiness is program order.
  llvm::stable_sort(group.gradients, [](const Gradient &a, const Gradient &b) {
    Operation *x = a.value.getDefiningOp(), *y = b.value.getDefiningOp();
    return x != y && x->isBeforeInBlock(y);
  });
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(group.gradients, [](const Gradient &gradient) { return gradient.size(); });
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  if (total == 0)
    return;
  MLIRContext *context = func.getContext();
  int64_t bytes = elementBytes(group.elementType);
  BucketCut cut(total, bytes, bucketBytes, mesh.getMesh().getSize(group.axes), /*grain=*/1);
  auto symbol = FlatSymbolRefAttr::get(context, mesh.getSymName());
  auto partialOver = [&](int64_t rank, ArrayRef<StringAttr> axes) {
    return ShardingAttr::getReplicated(symbol, rank).withUnreduced(ReduceKindAttrEnum::sum, axes);
  };

  struct Piece {
    Value bucket;
    int64_t begin, end;
  };
  SmallVector<SmallVector<Piece>> pieces(group.gradients.size());
  for (auto [bucket, parts] : llvm::enumerate(cut.cutTensors(sizes))) {
    int64_t first = cut.begin(bucket), last = cut.end(bucket);
    SmallVector<unsigned> members;
    SmallVector<Value> inputs;
    SmallVector<int64_t> begins, ends;
    for (BucketCut::Part part : parts) {
      members.push_back(part.tensor);
      inputs.push_back(group.gradients[part.tensor].value);
      begins.push_back(part.begin);
      ends.push_back(part.end);
    }
    OpBuilder b(context);
    b.setInsertionPointAfter(inputs.back().getDefiningOp());
    Location loc = inputs.back().getLoc();
    auto type = RankedTensorType::get({last - first}, group.elementType);
    auto packed = b.create<PackOp>(loc, type, inputs, begins, ends, index, first);
    setSharding(packed, partialOver(1, group.unreduced));
    // What is still partial is on its way to another bucket, which is where gradients lie.
    if (!group.rest.empty())
      setClass(packed, exec::StorageClass::workspace);
    auto reduced = b.create<ReshardOp>(loc, packed, partialOver(1, group.rest),
                                       b.getStringAttr(reason(group, members, bucket, cut.count)));
    setSharding(reduced, partialOver(1, group.rest));
    int64_t at = 0;
    for (auto [k, member] : llvm::enumerate(members)) {
      int64_t size = ends[k] - begins[k];
      pieces[member].push_back({reduced, at, at + size});
      at += size;
    }
  }

  for (auto [gradient, parts] : llvm::zip_equal(group.gradients, pieces)) {
    if (parts.empty())
      continue;
    SmallVector<Value> buckets;
    SmallVector<int64_t> begins, ends;
    for (const Piece &piece : parts) {
      buckets.push_back(piece.bucket);
      begins.push_back(piece.begin);
      ends.push_back(piece.end);
    }
    OpBuilder b(context);
    b.setInsertionPointAfter(buckets.back().getDefiningOp());
    auto type = cast<RankedTensorType>(gradient.value.getType());
    auto unpacked = b.create<UnpackOp>(gradient.value.getLoc(), type, buckets, begins, ends);
    setSharding(unpacked, partialOver(type.getRank(), group.rest));
    // It is the gradient's value, whole over these axes.
    auto result = cast<OpResult>(gradient.value);
    Operation *def = result.getOwner();
    Attribute tag;
    if (auto globals = def->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr))
      tag = globals[result.getResultNumber()];
    else if (auto id = def->getAttrOfType<IntegerAttr>(DistDialect::kIdAttr))
      tag = GlobalAttr::get(context, id.getInt() + result.getResultNumber(), type, partialOver(type.getRank(), {}));
    if (tag)
      unpacked->setAttr(DistDialect::kGlobalsAttr, b.getArrayAttr(tag));
    replaceUses(gradient.value, unpacked);
  }
}

void Packer::run() {
  if (!func.getBody().hasOneBlock())
    return;
  Block &block = func.getBody().front();
  auto result = dyn_cast<func::ReturnOp>(block.getTerminator());
  if (!result)
    return;
  for (auto [i, value] : llvm::enumerate(result.getOperands()))
    if (auto name = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kGradAttr))
      collect(value, name.getValue());
  for (Operation &op : block)
    if (auto update = dyn_cast<nn::OptimizerUpdateOpInterface>(op))
      collect(update.getGrad(), "a parameter");
  collectProducers();
  // Groups of an earlier run, over other axes, keep their numbers.
  int64_t first = findFreeGroup(func);
  for (auto [index, group] : llvm::enumerate(groups))
    pack(group, first + index);
  reduceBeforeGathers();
  // Users that stood before the last gradient of a bucket now come after it.
  if (!groups.empty())
    sortTopologically(&block);
}

} // namespace

void packGradientRanges(func::FuncOp func, MeshOp mesh, ArrayRef<StringAttr> axes, ArrayRef<StringAttr> joint,
                        int64_t bucketBytes) {
  Packer(func, mesh, axes, joint, bucketBytes).run();
}

} // namespace shoal::dist
