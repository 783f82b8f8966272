// dist-expand-collectives: collectives as libraries offer them, on equal contiguous chunks in rank
// order, with what brings other forms to that as explicit `nn` ops.
#include "BucketCut.h"
#include "UnrollAccumulate.h"

#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_EXPANDCOLLECTIVESPASS
#include "shoal/passes/ShoalDist.h.inc"

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Builds the shape ops around one collective.
class Shaper {
public:
  explicit Shaper(Operation *op) : b(op), loc(op->getLoc()), origin(op) {}

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    auto type = typeOf(value).clone(shape);
    return type == value.getType() ? value : b.create<nn::ReshapeOp>(loc, type, value).getResult();
  }

  Value transpose(Value value, ArrayRef<int64_t> permutation) {
    // Only dimensions of size 1 change places: the elements stay.
    SmallVector<int64_t> shape, order;
    for (int64_t dim : permutation) {
      shape.push_back(typeOf(value).getDimSize(dim));
      if (shape.back() != 1)
        order.push_back(dim);
    }
    if (llvm::is_sorted(order))
      return reshape(value, shape);
    return b.create<nn::TransposeOp>(loc, typeOf(value).clone(shape), value, permutation);
  }

  /// Dimension `from` becomes dimension `to`, the others keep their order.
  Value moveDim(Value value, int64_t from, int64_t to) {
    SmallVector<int64_t> permutation;
    for (int64_t d = 0; d < typeOf(value).getRank(); ++d)
      if (d != from)
        permutation.push_back(d);
    permutation.insert(permutation.begin() + to, from);
    return transpose(value, permutation);
  }

  /// A collective that stands for the one that is expanded, at the same positions.
  template <typename OpT> OpT keepPositions(OpT made) {
    if (Attribute at = origin->getAttr(DistDialect::kAtAttr))
      made->setAttr(DistDialect::kAtAttr, at);
    return made;
  }

  Value padTo(Value value, int64_t dim, int64_t size) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    if (shape[dim] == size)
      return value;
    shape[dim] = size;
    return b.create<nn::PadOp>(loc, typeOf(value).clone(shape), value, dim, /*low=*/0);
  }

  Value cutTo(Value value, int64_t dim, int64_t size) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    if (shape[dim] == size)
      return value;
    shape[dim] = size;
    return b.create<nn::SliceOp>(loc, typeOf(value).clone(shape), value, dim, /*start=*/0);
  }

  OpBuilder b;
  Location loc;

private:
  Operation *origin;
};

Value expand(AllGatherOp op, int64_t devices) {
  Shaper s(op);
  int64_t dim = op.getDim(), size = typeOf(op.getResult()).getDimSize(dim);
  int64_t padded = devices * typeOf(op.getInput()).getDimSize(dim);
  if (dim == 0 && padded == size)
    return {};
  Value chunk = s.moveDim(op.getInput(), dim, 0);
  SmallVector<int64_t> shape(typeOf(chunk).getShape());
  shape[0] = padded;
  Value whole = s.keepPositions(s.b.create<AllGatherOp>(
      s.loc, typeOf(chunk).clone(shape), op.getAxesAttr(), /*dim=*/0, chunk, op.getReasonAttr()));
  return s.cutTo(s.moveDim(whole, 0, dim), dim, size);
}

Value expand(ReduceScatterOp op, int64_t devices) {
  Shaper s(op);
  int64_t dim = op.getDim(), part = typeOf(op.getResult()).getDimSize(dim);
  if (dim == 0 && typeOf(op.getInput()).getDimSize(0) == devices * part)
    return {};
  Value whole = s.moveDim(s.padTo(op.getInput(), dim, devices * part), dim, 0);
  SmallVector<int64_t> shape(typeOf(whole).getShape());
  shape[0] = part;
  Value chunk = s.keepPositions(
      s.b.create<ReduceScatterOp>(s.loc, typeOf(whole).clone(shape), op.getAxesAttr(), op.getKind(),
                                  /*dim=*/0, whole, op.getReasonAttr()));
  return s.moveDim(chunk, 0, dim);
}

Value expand(AllToAllOp op, int64_t devices) {
  int64_t split = op.getSplit(), concat = op.getConcat();
  RankedTensorType input = typeOf(op.getInput()), result = typeOf(op.getResult());
  bool isPlain = input.getRank() == 2 && split == 0 && concat == 1 &&
                 input.getDimSize(0) == devices &&
                 result.getDimSize(1) == devices * input.getDimSize(1);
  if (isPlain)
    return {};
  Shaper s(op);
  int64_t part = result.getDimSize(split);
  // [.., devices * part, ..] -> [devices, .., part, ..]: chunk k goes to device k.
  Value value = s.padTo(op.getInput(), split, devices * part);
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape[split] = part;
  shape.insert(shape.begin() + split, devices);
  value = s.moveDim(s.reshape(value, shape), split, 0);
  SmallVector<int64_t> chunks(typeOf(value).getShape());
  int64_t elements = typeOf(value).getNumElements() / devices;
  value = s.reshape(value, {devices, elements});
  value = s.keepPositions(
      s.b.create<AllToAllOp>(s.loc, typeOf(value).clone({1, devices * elements}), op.getAxesAttr(),
                             /*split=*/0, /*concat=*/1, value, op.getReasonAttr()));
  // [devices, .., local, ..] -> [.., devices * local, ..]: chunk k came from device k.
  value = s.moveDim(s.reshape(value, chunks), 0, concat);
  SmallVector<int64_t> merged(chunks.begin() + 1, chunks.end());
  merged[concat] *= devices;
  return s.cutTo(s.reshape(value, merged), concat, result.getDimSize(concat));
}

Value expand(AllSliceOp op, int64_t devices) {
  Shaper s(op);
  int64_t dim = op.getDim(), part = typeOf(op.getResult()).getDimSize(dim);
  Value whole = s.padTo(op.getInput(), dim, devices * part);
  Value start = s.b.create<AxisIndexOp>(s.loc, RankedTensorType::get({}, s.b.getI64Type()),
                                        op.getAxesAttr(), part);
  return s.b.create<nn::DynamicSliceOp>(s.loc, typeOf(op.getResult()), whole, start, dim);
}

/// A constant of each position: that row of a table.
Value expand(PositionConstantOp op, MeshAttr mesh) {
  OpBuilder b(op);
  auto type = typeOf(op.getResult());
  SmallVector<StringAttr> axes;
  for (MeshAxisAttr axis : mesh.getAxes())
    axes.push_back(axis.getName());
  Value table = b.create<nn::ConstantOp>(
      op.getLoc(), b.getI64TensorAttr(op.getValues()));
  Value position = b.create<AxisIndexOp>(op.getLoc(), type, AxesAttr::get(b.getContext(), axes), 1);
  Value entry = b.create<nn::DynamicSliceOp>(op.getLoc(), type.clone({1}), table, position, /*dim=*/0);
  return b.create<nn::ReshapeOp>(op.getLoc(), type, entry);
}

/// The value that replaces a collective; null when it is as libraries want it.
Value expandCollective(CollectiveOpInterface op, MeshAttr mesh) {
  int64_t devices = mesh.getSize(op.getAxesAttr().getAxes());
  if (devices == 1 && op.isIdentityAlone())
    return op->getOperand(0);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<AllGatherOp, ReduceScatterOp, AllToAllOp, AllSliceOp>(
          [&](auto collective) { return expand(collective, devices); })
      .Default(Value());
}

/// What was made in front of an op for it, behind `before`, belongs where it does, and is of its micro-batch.
void keepOrigin(Operation *op, Operation *before) {
  Attribute number = op->getAttr(kMicrobatchAttr);
  Operation *made = before ? before->getNextNode() : &op->getBlock()->front();
  for (; made != op; made = made->getNextNode()) {
    copyOrigin(op, made);
    if (number)
      made->setAttr(kMicrobatchAttr, number);
  }
}

struct ExpandCollectivesPass : impl::ExpandCollectivesPassBase<ExpandCollectivesPass> {
  using ExpandCollectivesPassBase::ExpandCollectivesPassBase;

  void runOnOperation() override {
    SmallVector<AccumulateOp> regions;
    getOperation().walk<WalkOrder::PreOrder>([&](AccumulateOp op) {
      regions.push_back(op);
      return WalkResult::skip(); // their copies are another's
    });
    int64_t freeGroup = findFreeGroup(getOperation());
    for (size_t i = 0; i < regions.size(); ++i) // grows
      unrollAccumulate(regions[i], regions, freeGroup);

    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return;
    SmallVector<CollectiveOpInterface> collectives;
    getOperation().walk([&](CollectiveOpInterface op) { collectives.push_back(op); });
    for (CollectiveOpInterface op : collectives) {
      Operation *before = op->getPrevNode();
      Value value = expandCollective(op, mesh.getMesh());
      if (!value)
        continue;
      keepOrigin(op, before);
      // The last op stands for the same global value; one that existed keeps its own tag.
      Operation *def = value.getDefiningOp();
      if (def && value != op->getOperand(0))
        if (Attribute tags = op->getAttr(DistDialect::kGlobalsAttr))
          def->setAttr(DistDialect::kGlobalsAttr, tags);
      op->getResult(0).replaceAllUsesWith(value);
      op->erase();
    }

    SmallVector<PositionConstantOp> constants;
    getOperation().walk([&](PositionConstantOp op) {
      if (isa<RankedTensorType>(op.getResult().getType()))
        constants.push_back(op);
    });
    for (PositionConstantOp op : constants) {
      Operation *before = op->getPrevNode();
      op.getResult().replaceAllUsesWith(expand(op, mesh.getMesh()));
      keepOrigin(op, before);
      op.erase();
    }
  }
};

} // namespace
} // namespace shoal::dist
