// Matching of collectives, sends and receives among ranks.
#include "Rendezvous.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace shoal::interp {

std::string describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName();
  if (auto loc = op->getLoc()->findInstanceOf<FileLineColLoc>())
    os << " at " << loc.getFilename().getValue() << ":" << loc.getLine() << ":" << loc.getColumn();
  return text;
}

// Whether two ranks call the same collective: what dialects say of it (tags, layers) makes no other of it.
static bool matches(Operation *a, Operation *b) {
  return a == b || dist::doTheSame(a, b, [](StringRef name) { return name.contains('.'); });
}

int64_t Rendezvous::rankOf(int64_t position) const {
  if (!mesh || mesh.getDeviceIds().empty())
    return position;
  return mesh.getDeviceIds()[position];
}

Rendezvous::Communicator &Rendezvous::communicator(dist::AxesAttr axes, int64_t position) {
  std::vector<std::string> names;
  for (StringAttr axis : axes.getAxes())
    names.push_back(axis.str());
  int64_t first = mesh.getPositionAlong(position, axes.getAxes(), 0);
  Communicator &found = communicators[{names, first}];
  if (found.members.empty()) {
    int64_t size = mesh.getSize(axes.getAxes());
    found.joined.assign(size, 0);
    // Members differ from `position` only along the axes.
    for (int64_t index = 0; index < size; ++index)
      found.members.push_back(mesh.getPositionAlong(position, axes.getAxes(), index));
  }
  return found;
}

FailureOr<Ticket> Rendezvous::join(Operation *op, dist::AxesAttr axes, int64_t position,
                                   TensorRef input) {
  Communicator &comm = communicator(axes, position);
  unsigned member = mesh.getIndexAlong(position, axes.getAxes());
  size_t size = comm.members.size();
  size_t slot = comm.joined[member]++ - comm.closed;
  if (slot == comm.open.size()) {
    auto fresh = std::make_shared<Transfer>();
    fresh->ops.assign(size, nullptr);
    fresh->inputs.resize(size);
    comm.open.push_back(std::move(fresh));
  }
  std::shared_ptr<Transfer> transfer = comm.open[slot];
  for (auto [other, otherOp] : llvm::enumerate(transfer->ops)) {
    if (!otherOp)
      continue;
    // As dist-fold-control-flow has it: what is deeper in a branch than its equal is another collective.
    bool meets = matches(op, otherOp);
    if (meets && op->getParentOp() == otherOp->getParentOp())
      continue;
    return op->emitError() << (meets ? "ranks meet at equal collectives only directly in branches of one op: rank "
                                     : "ranks call different collectives on the same axes: rank ")
                           << rankOf(position) << " is in " << describe(op) << ", rank "
                           << rankOf(comm.members[other]) << " in " << describe(otherOp);
  }
  transfer->ops[member] = op;
  transfer->inputs[member] = std::move(input);
  Ticket ticket{transfer, member, op};
  if (llvm::is_contained(transfer->ops, nullptr))
    return ticket;

  // The last member is here. Earlier collectives of the communicator are complete by then.
  FailureOr<SmallVector<Tensor>> results = evaluateCollective(op, transfer->inputs);
  if (failed(results))
    return failure();
  for (Tensor &result : *results) {
    normalize(result, precision);
    transfer->results.push_back(std::make_shared<const Tensor>(std::move(result)));
  }
  transfer->inputs.clear();
  transfer->done = true;
  while (!comm.open.empty() && comm.open.front()->done) {
    comm.open.pop_front();
    ++comm.closed;
  }
  return ticket;
}

// Member 0 of a message is its sender, member 1 its receiver.
FailureOr<Ticket> Rendezvous::message(Operation *op, dist::AxesAttr axes, int64_t position,
                                      int64_t peer, TensorRef input) {
  Communicator &comm = communicator(axes, position);
  bool sends = isa<dist::SendOp>(op);
  int64_t self = mesh.getIndexAlong(position, axes.getAxes()), size = comm.members.size();
  if (peer < 0 || peer >= size)
    return op->emitError() << (sends ? "sends to" : "receives from") << " a peer outside [0, "
                           << size << ") on rank " << rankOf(position) << ", got: " << peer;
  unsigned side = sends ? 0 : 1;
  auto &queue = comm.messages[sends ? std::make_pair(unsigned(self), unsigned(peer))
                                    : std::make_pair(unsigned(peer), unsigned(self))];
  // Messages of one direction match in order, so at most one side waits in the queue.
  if (queue.empty() || queue.front()->ops[side]) {
    auto fresh = std::make_shared<Transfer>();
    fresh->ops.assign(2, nullptr);
    fresh->inputs.resize(2);
    queue.push_back(fresh);
    fresh->ops[side] = op;
    fresh->inputs[side] = std::move(input);
    return Ticket{fresh, side, op};
  }
  std::shared_ptr<Transfer> transfer = queue.front();
  queue.pop_front();
  transfer->ops[side] = op;
  transfer->inputs[side] = std::move(input);
  auto sent = cast<dist::SendOp>(transfer->ops[0]);
  auto received = cast<dist::RecvOp>(transfer->ops[1]);
  if (sent.getInput().getType() != received.getResult().getType())
    return op->emitError() << "a message is sent as " << sent.getInput().getType() << " by "
                           << describe(sent) << " and received as "
                           << received.getResult().getType() << " by " << describe(received);
  transfer->results = {nullptr, transfer->inputs[0]};
  transfer->inputs.clear();
  transfer->done = true;
  return Ticket{transfer, side, op};
}

FailureOr<Ticket> Rendezvous::send(dist::SendOp op, int64_t position, int64_t peer,
                                   TensorRef input) {
  return message(op, op.getAxes(), position, peer, std::move(input));
}

FailureOr<Ticket> Rendezvous::recv(dist::RecvOp op, int64_t position, int64_t peer) {
  return message(op, op.getAxes(), position, peer, nullptr);
}

} // namespace shoal::interp
