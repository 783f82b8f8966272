// Sends and receives of a rank, at its positions.
#include "Messages.h"

#include "shoal/Dialect/Dist/IR/Messages.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shoal::pipe {

llvm::BitVector PipeAxis::getPositions(const llvm::BitVector &ranks) const {
  llvm::BitVector positions(mesh.getNumDevices());
  for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
    if (ranks.test(mesh.getIndexAlong(position, name)))
      positions.set(position);
  return positions;
}

dist::ReasonAttr getReason(MLIRContext *context, StringRef what, const Twine &asker) {
  auto cause = dist::CauseAttr::get(context, StringAttr::get(context, what), {},
                                    StringAttr::get(context, dist::kPipelineStrategy));
  return dist::ReasonAttr::get(context, StringAttr::get(context, asker), {}, {}, {cause});
}

SmallVector<Value> communicate(OpBuilder &b, Location loc, PipeAxis axis, unsigned rank, ArrayRef<Message> messages) {
  llvm::BitVector at = axis.getPositions(rank);
  SmallVector<Value> peers, received;
  SmallVector<Type> types;
  for (const Message &message : messages) {
    peers.push_back(b.create<arith::ConstantIndexOp>(loc, message.peer));
    if (!message.sent)
      types.push_back(message.type);
  }
  dist::GroupOp group;
  OpBuilder inner = b;
  if (messages.size() > 1) {
    group = b.create<dist::GroupOp>(loc, TypeRange(types));
    dist::setPositions(group, at);
    inner = OpBuilder::atBlockEnd(&group.getBody().emplaceBlock());
  }
  for (auto [message, peer] : llvm::zip_equal(messages, peers)) {
    Operation *op;
    if (message.sent) {
      op = inner.create<dist::SendOp>(loc, axis.getAxes(), message.sent, peer, message.reason);
    } else {
      op = inner.create<dist::RecvOp>(loc, message.type, axis.getAxes(), peer, message.reason);
      received.push_back(op->getResult(0));
    }
    op->setAttr(dist::kAsyncAttr, b.getUnitAttr());
    if (message.microbatch)
      op->setAttr(dist::kMicrobatchAttr, message.microbatch);
    if (message.scope)
      op->setAttr(exec::ExecDialect::kScopeAttr, message.scope);
    if (!group)
      dist::setPositions(op, at);
  }
  if (!group)
    return received;
  inner.create<dist::YieldOp>(loc, received);
  return llvm::to_vector_of<Value>(group.getResults());
}

} // namespace shoal::pipe
