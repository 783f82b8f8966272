// Peers of the positions that take part, folded for each of them.
#include "Peers.h"

#include "shoal/Dialect/Dist/IR/Positions.h"

using namespace mlir;

namespace shoal::exec {

FailureOr<SmallVector<int64_t>> evaluatePeers(Operation *op, Value peer, ArrayRef<StringAttr> axes,
                                              dist::MeshAttr mesh) {
  SmallVector<int64_t> peers(mesh.getNumDevices(), -1);
  int64_t size = mesh.getSize(axes);
  llvm::BitVector positions = dist::getPositions(op, mesh);
  for (unsigned position : positions.set_bits()) {
    FailureOr<int64_t> index = dist::evaluateAt(peer, mesh, position);
    if (failed(index))
      return failure();
    if (*index < 0 || *index >= size)
      return op->emitOpError() << "peer of mesh position " << position
                               << " must be a position of the group of " << size
                               << ", got: " << *index;
    peers[position] = mesh.getPositionAlong(position, axes, *index);
  }
  return peers;
}

} // namespace shoal::exec
