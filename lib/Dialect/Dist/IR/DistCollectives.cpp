// Verifiers of the collectives, and questions about them. What needs no mesh is checked by `verify`; axes, roots and
// sizes of shards are checked against the module's mesh in `verifySymbolUses`.
#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Dist.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace shoal::dist;

namespace {

/// Devices in the group of a collective; diagnoses a missing mesh and unknown or no axes.
FailureOr<int64_t> getGroupSize(Operation *op, AxesAttr axes) {
  MeshOp mesh = lookupMesh(op);
  if (!mesh)
    return op->emitOpError("names axes, but the module has no dist.mesh");
  if (axes.empty())
    return op->emitOpError("must name at least one axis");
  for (StringAttr axis : axes.getAxes())
    if (!mesh.getMesh().getAxisSize(axis)) {
      InFlightDiagnostic diag = op->emitOpError("names unknown axis ")
                                << axis << "; the mesh is " << mesh.getMesh();
      diag.attachNote(mesh.getLoc()) << "the mesh is here";
      return diag;
    }
  return mesh.getMesh().getSize(axes.getAxes());
}

LogicalResult verifyAxes(Operation *op, AxesAttr axes) {
  return success(succeeded(getGroupSize(op, axes)));
}

/// Input and result agree but for the sizes of `dims`.
LogicalResult verifyShapes(Operation *op, RankedTensorType input, RankedTensorType result,
                           ArrayRef<uint64_t> dims) {
  if (input.getElementType() != result.getElementType())
    return op->emitOpError("must keep the element type ")
           << input.getElementType() << ", got: " << result.getElementType();
  if (input.getRank() != result.getRank())
    return op->emitOpError("must keep the rank ")
           << input.getRank() << ", got: " << result.getRank();
  for (uint64_t dim : dims)
    if (dim >= (uint64_t)input.getRank())
      return op->emitOpError("dimension must be in [0, ")
             << input.getRank() << "), got: " << (int64_t)dim;
  for (int64_t d = 0; d < input.getRank(); ++d)
    if (!llvm::is_contained(dims, (uint64_t)d) && input.getDimSize(d) != result.getDimSize(d))
      return op->emitOpError("must keep the size of dimension ")
             << d << ": " << input.getDimSize(d) << ", got: " << result.getDimSize(d);
  return success();
}

/// `local` is the shard of `whole` elements over `parts` devices.
LogicalResult verifyShard(Operation *op, uint64_t dim, int64_t whole, int64_t local,
                          int64_t parts) {
  if (local == shardSize(whole, parts))
    return success();
  return op->emitOpError("shard of dimension ")
         << dim << " must be ceil(" << whole << " / " << parts << ") = " << shardSize(whole, parts)
         << ", got: " << local;
}

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

LogicalResult verifyPairs(Operation *op, ArrayRef<int64_t> sources, ArrayRef<int64_t> targets) {
  if (sources.size() != targets.size())
    return op->emitOpError("must have as many sources as targets, got: ")
           << sources.size() << " and " << targets.size();
  for (auto [name, list] : {std::pair("source", sources), std::pair("target", targets)}) {
    llvm::SmallSet<int64_t, 8> seen;
    for (int64_t position : list)
      if (!seen.insert(position).second)
        return op->emitOpError() << name << " " << position << " is named twice";
  }
  return success();
}

LogicalResult verifyPositions(Operation *op, AxesAttr axes, ArrayRef<int64_t> sources,
                              ArrayRef<int64_t> targets) {
  auto size = getGroupSize(op, axes);
  if (failed(size))
    return failure();
  for (ArrayRef<int64_t> list : {sources, targets})
    for (int64_t position : list)
      if (position < 0 || position >= *size)
        return op->emitOpError("position must be in [0, ") << *size << "), got: " << position;
  return success();
}

LogicalResult verifyRoot(Operation *op, AxesAttr axes, int64_t root) {
  auto size = getGroupSize(op, axes);
  if (failed(size))
    return failure();
  if (root < 0 || root >= *size)
    return op->emitOpError("root must be in [0, ") << *size << "), got: " << root;
  return success();
}

} // namespace

// What needs no mesh.

LogicalResult AllGatherOp::verify() {
  return verifyShapes(*this, typeOf(getInput()), typeOf(getResult()), {getDim()});
}
LogicalResult ReduceScatterOp::verify() {
  return verifyShapes(*this, typeOf(getInput()), typeOf(getResult()), {getDim()});
}
LogicalResult AllSliceOp::verify() {
  return verifyShapes(*this, typeOf(getInput()), typeOf(getResult()), {getDim()});
}
LogicalResult AllToAllOp::verify() {
  if (getSplit() == getConcat())
    return emitOpError("must split and concatenate different dimensions, got: ")
           << (int64_t)getSplit() << " for both";
  return verifyShapes(*this, typeOf(getInput()), typeOf(getResult()), {getSplit(), getConcat()});
}
LogicalResult BroadcastOp::verify() { return success(); }
LogicalResult ScatterOp::verify() {
  return verifyShapes(*this, typeOf(getInput()), typeOf(getResult()), {0});
}
LogicalResult GatherOp::verify() {
  return verifyShapes(*this, typeOf(getInput()), typeOf(getResult()), {0});
}
LogicalResult CollectivePermuteOp::verify() {
  return verifyPairs(*this, getSources(), getTargets());
}
LogicalResult PermuteStartOp::verify() {
  if (getFuture().getType().getTensor() != getInput().getType())
    return emitOpError("future must hold ")
           << getInput().getType() << ", got: " << getFuture().getType().getTensor();
  return verifyPairs(*this, getSources(), getTargets());
}
LogicalResult WaitOp::verify() {
  if (getFuture().getType().getTensor() != getResult().getType())
    return emitOpError("must return what the future holds: ")
           << getFuture().getType().getTensor() << ", got: " << getResult().getType();
  return success();
}

// What needs the mesh.

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyAxes(*this, getAxes());
}
LogicalResult BarrierOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyAxes(*this, getAxes());
}
LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyAxes(*this, getAxes());
}
LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyAxes(*this, getAxes());
}
LogicalResult AxisIndexOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyAxes(*this, getAxes());
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  auto size = getGroupSize(*this, getAxes());
  if (failed(size))
    return failure();
  return verifyShard(*this, getDim(), typeOf(getResult()).getDimSize(getDim()),
                     typeOf(getInput()).getDimSize(getDim()), *size);
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  auto size = getGroupSize(*this, getAxes());
  if (failed(size))
    return failure();
  return verifyShard(*this, getDim(), typeOf(getInput()).getDimSize(getDim()),
                     typeOf(getResult()).getDimSize(getDim()), *size);
}

LogicalResult AllSliceOp::verifySymbolUses(SymbolTableCollection &) {
  auto size = getGroupSize(*this, getAxes());
  if (failed(size))
    return failure();
  return verifyShard(*this, getDim(), typeOf(getInput()).getDimSize(getDim()),
                     typeOf(getResult()).getDimSize(getDim()), *size);
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  auto size = getGroupSize(*this, getAxes());
  if (failed(size))
    return failure();
  RankedTensorType input = typeOf(getInput()), result = typeOf(getResult());
  if (failed(verifyShard(*this, getSplit(), input.getDimSize(getSplit()),
                         result.getDimSize(getSplit()), *size)))
    return failure();
  return verifyShard(*this, getConcat(), result.getDimSize(getConcat()),
                     input.getDimSize(getConcat()), *size);
}

LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyRoot(*this, getAxes(), getRoot());
}

/// `whole` holds exactly one equal part per device.
static LogicalResult verifyEqualParts(Operation *op, AxesAttr axes, int64_t whole, int64_t part) {
  int64_t size = *getGroupSize(op, axes);
  if (whole % size == 0 && part == whole / size)
    return success();
  return op->emitOpError("must have ")
         << size << " equal parts along dimension 0: " << whole << " rows, parts of " << part;
}

LogicalResult ScatterOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyRoot(*this, getAxes(), getRoot())))
    return failure();
  return verifyEqualParts(*this, getAxes(), typeOf(getInput()).getDimSize(0),
                          typeOf(getResult()).getDimSize(0));
}

LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyRoot(*this, getAxes(), getRoot())))
    return failure();
  return verifyEqualParts(*this, getAxes(), typeOf(getResult()).getDimSize(0),
                          typeOf(getInput()).getDimSize(0));
}

LogicalResult CollectivePermuteOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPositions(*this, getAxes(), getSources(), getTargets());
}
LogicalResult PermuteStartOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPositions(*this, getAxes(), getSources(), getTargets());
}

namespace shoal::dist {

RankedTensorType getTensorType(Type type) {
  if (auto future = dyn_cast<FutureType>(type))
    return future.getTensor();
  return dyn_cast<RankedTensorType>(type);
}

// A future has the dimensions of its tensor.
bool FutureType::hasRank() const { return true; }
ArrayRef<int64_t> FutureType::getShape() const { return getTensor().getShape(); }
Type FutureType::getElementType() const { return getTensor().getElementType(); }
ShapedType FutureType::cloneWith(std::optional<ArrayRef<int64_t>> shape, Type elementType) const {
  return get(getContext(), llvm::cast<RankedTensorType>(getTensor().cloneWith(shape, elementType)));
}

bool doTheSame(Operation *a, Operation *b, llvm::function_ref<bool(StringRef)> isIgnored) {
  auto attributes = [&](Operation *op) {
    SmallVector<NamedAttribute> list;
    for (NamedAttribute attr : op->getAttrDictionary())
      if (attr.getName() != "reason" && !isIgnored(attr.getName()))
        list.push_back(attr);
    return DictionaryAttr::get(op->getContext(), list);
  };
  return a->getName() == b->getName() && a->getOperandTypes() == b->getOperandTypes() &&
         a->getResultTypes() == b->getResultTypes() && attributes(a) == attributes(b);
}

} // namespace shoal::dist
