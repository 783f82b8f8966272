// Scalars at a mesh position are folded by the ops' own folders, so that no op has to be known here.
#include "shoal/Dialect/Dist/IR/Positions.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace shoal::dist {

FailureOr<SmallVector<Attribute>> foldAt(Operation *op, MeshAttr mesh, int64_t position,
                                         ScalarLookup lookup) {
  MLIRContext *context = op->getContext();
  if (auto index = dyn_cast<AxisIndexOp>(op)) {
    int64_t along = mesh.getIndexAlong(position, index.getAxes().getAxes());
    // Wraps as the machine does.
    auto scaled = int64_t(uint64_t(along) * uint64_t(index.getScale()));
    return SmallVector<Attribute>{IntegerAttr::get(IndexType::get(context), scaled)};
  }
  if (auto constant = dyn_cast<PositionConstantOp>(op))
    return SmallVector<Attribute>{
        IntegerAttr::get(IndexType::get(context), constant.getValues()[position])};
  Attribute value;
  if (matchPattern(op, m_Constant(&value)))
    return SmallVector<Attribute>{value};
  SmallVector<Attribute> operands, results;
  // A copy without a past: folders change their op, and look at what made its operands.
  Block block;
  IRMapping map;
  for (Value operand : op->getOperands()) {
    FailureOr<Attribute> attr = lookup(operand);
    if (failed(attr))
      return failure();
    operands.push_back(*attr);
    map.map(operand, block.addArgument(operand.getType(), operand.getLoc()));
  }
  SmallVector<OpFoldResult> folded;
  auto isFolded = [&] {
    Operation *copy = op->clone(map);
    block.push_back(copy);
    return succeeded(copy->fold(operands, folded)) && !folded.empty();
  };
  if (op->getNumRegions() || !isFolded())
    return op->emitOpError() << "cannot be folded at mesh position " << position;
  for (OpFoldResult result : folded) {
    auto attr = dyn_cast<Attribute>(result);
    results.push_back(attr ? attr : operands[cast<BlockArgument>(cast<Value>(result)).getArgNumber()]);
  }
  return results;
}

FailureOr<int64_t> readInteger(Location loc, Attribute attr) {
  auto integer = dyn_cast<IntegerAttr>(attr);
  if (!integer)
    return emitError(loc) << "must be an integer, got: " << attr;
  const APInt &value = integer.getValue();
  if (value.getBitWidth() > 64)
    return emitError(loc) << "must be an integer of at most 64 bits, got: " << integer.getType();
  return value.getBitWidth() == 1 ? int64_t(value.getBoolValue()) : value.getSExtValue();
}

static FailureOr<Attribute> evaluate(Value value, MeshAttr mesh, int64_t position,
                                     DenseMap<Value, Attribute> &known) {
  if (Attribute attr = known.lookup(value))
    return attr;
  Operation *op = value.getDefiningOp();
  if (!op)
    return emitError(value.getLoc())
           << "must be made of constants and dist.axis_index, got an argument";
  FailureOr<SmallVector<Attribute>> results = foldAt(
      op, mesh, position, [&](Value operand) { return evaluate(operand, mesh, position, known); });
  if (failed(results))
    return failure();
  return known[value] = (*results)[cast<OpResult>(value).getResultNumber()];
}

FailureOr<int64_t> evaluateAt(Value index, MeshAttr mesh, int64_t position) {
  DenseMap<Value, Attribute> known;
  FailureOr<Attribute> attr = evaluate(index, mesh, position, known);
  if (failed(attr))
    return failure();
  return readInteger(index.getLoc(), *attr);
}

llvm::BitVector getPositions(Operation *op, MeshAttr mesh) {
  llvm::BitVector positions(mesh.getNumDevices(), true);
  for (; op; op = op->getParentOp()) {
    auto attr = op->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kAtAttr);
    if (!attr)
      continue;
    llvm::BitVector named(mesh.getNumDevices());
    for (int64_t position : attr.asArrayRef())
      named.set(position);
    positions &= named;
  }
  return positions;
}

llvm::BitVector getReadPositions(OpOperand &use, MeshAttr mesh) {
  llvm::BitVector positions = getPositions(use.getOwner(), mesh);
  if (auto select = dyn_cast<SelectOp>(use.getOwner()))
    for (auto [position, choice] : llvm::enumerate(select.getChoices()))
      if (choice != int64_t(use.getOperandNumber()))
        positions.reset(position);
  return positions;
}

bool haveCommon(DenseI64ArrayAttr a, DenseI64ArrayAttr b) {
  if (!a || !b || a == b)
    return true;
  ArrayRef<int64_t> mine = a, theirs = b;
  while (!mine.empty() && !theirs.empty()) {
    if (mine.front() == theirs.front())
      return true;
    ArrayRef<int64_t> &lower = mine.front() < theirs.front() ? mine : theirs;
    lower = lower.drop_front();
  }
  return false;
}

bool mayMeet(Operation *a, Operation *b) {
  return haveCommon(a->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kAtAttr),
                    b->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kAtAttr));
}

void setPositions(Operation *op, const llvm::BitVector &positions) {
  if (positions.all()) {
    op->removeAttr(DistDialect::kAtAttr);
    return;
  }
  SmallVector<int64_t> list(positions.set_bits_begin(), positions.set_bits_end());
  op->setAttr(DistDialect::kAtAttr, DenseI64ArrayAttr::get(op->getContext(), list));
}

LogicalResult verifyPositions(Operation *op, NamedAttribute attr, MeshAttr mesh) {
  auto list = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
  if (!list || list.empty())
    return op->emitOpError() << attr.getName() << " must be an array of mesh positions, got: "
                             << attr.getValue();
  for (auto [number, position] : llvm::enumerate(list.asArrayRef())) {
    if (position < 0 || position >= mesh.getNumDevices())
      return op->emitOpError() << attr.getName() << " must hold positions of a mesh of "
                               << mesh.getNumDevices() << " devices, got: " << position;
    if (number && list[number - 1] >= position)
      return op->emitOpError() << attr.getName()
                               << " must name each position once, in order, got: " << list;
  }
  return success();
}

std::optional<GroupGap> findGap(MeshAttr mesh, ArrayRef<StringAttr> axes,
                                const llvm::BitVector &positions) {
  if (positions.all())
    return std::nullopt;
  int64_t size = mesh.getSize(axes);
  for (unsigned position : positions.set_bits())
    for (int64_t index = 0; index < size; ++index)
      if (int64_t other = mesh.getPositionAlong(position, axes, index); !positions.test(other))
        return GroupGap{position, other};
  return std::nullopt;
}

LogicalResult verifyWholeGroups(CollectiveOpInterface op, MeshAttr mesh,
                                const llvm::BitVector &positions) {
  if (!op.communicates() || isa<SendOp, RecvOp>(op.getOperation()))
    return success();
  if (std::optional<GroupGap> gap = findGap(mesh, op.getAxesAttr().getAxes(), positions))
    return op->emitOpError() << "needs every position of its group: position " << gap->missing
                             << " does not enter it, position " << gap->inside << " does";
  return success();
}

} // namespace shoal::dist
