// Folds index arithmetic per mesh position with the ops' own folders, so that no op has to be known
// here.
#include "Peers.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace shoal::exec {

static FailureOr<Attribute> fold(Value value, dist::MeshAttr mesh, int64_t position,
                                 DenseMap<Value, Attribute> &known) {
  if (Attribute attr = known.lookup(value))
    return attr;
  Operation *op = value.getDefiningOp();
  if (!op)
    return emitError(value.getLoc())
           << "position of a peer must be made of constants and dist.axis_index, got an argument";
  Attribute result;
  if (auto index = dyn_cast<dist::AxisIndexOp>(op)) {
    int64_t along = mesh.getIndexAlong(position, index.getAxes().getAxes());
    result = IntegerAttr::get(IndexType::get(value.getContext()), along * index.getScale());
  } else if (!matchPattern(op, m_Constant(&result))) {
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Attribute> attr = fold(operand, mesh, position, known);
      if (failed(attr))
        return failure();
      operands.push_back(*attr);
    }
    SmallVector<OpFoldResult> results;
    if (op->getNumRegions() || failed(op->fold(operands, results)) || results.empty())
      return op->emitOpError() << "cannot be folded for the position of a peer";
    OpFoldResult folded = results[cast<OpResult>(value).getResultNumber()];
    result = dyn_cast<Attribute>(folded);
    if (!result) {
      FailureOr<Attribute> attr = fold(cast<Value>(folded), mesh, position, known);
      if (failed(attr))
        return failure();
      result = *attr;
    }
  }
  known[value] = result;
  return result;
}

FailureOr<int64_t> evaluateAt(Value index, dist::MeshAttr mesh, int64_t position) {
  DenseMap<Value, Attribute> known;
  FailureOr<Attribute> attr = fold(index, mesh, position, known);
  if (failed(attr))
    return failure();
  auto integer = dyn_cast<IntegerAttr>(*attr);
  if (!integer)
    return emitError(index.getLoc()) << "position of a peer must be an integer, got: " << *attr;
  return integer.getValue().getSExtValue();
}

FailureOr<SmallVector<int64_t>> evaluatePeers(Operation *op, Value peer, ArrayRef<StringAttr> axes,
                                              dist::MeshAttr mesh) {
  SmallVector<int64_t> peers;
  int64_t size = mesh.getSize(axes);
  for (int64_t position = 0; position < mesh.getNumDevices(); ++position) {
    FailureOr<int64_t> index = evaluateAt(peer, mesh, position);
    if (failed(index))
      return failure();
    if (*index < 0 || *index >= size)
      return op->emitOpError() << "peer of mesh position " << position
                               << " must be a position of the group of " << size
                               << ", got: " << *index;
    peers.push_back(mesh.getPositionAlong(position, axes, *index));
  }
  return peers;
}

} // namespace shoal::exec
