// Where ranks meet: collectives and matched sends and receives. The same rules as NCCL and MPI: on
// one communicator every member calls the same collectives in the same order, and the messages
// between two members match in order.
#ifndef SHOAL_LIB_INTERPRETER_RENDEZVOUS_H
#define SHOAL_LIB_INTERPRETER_RENDEZVOUS_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Interpreter/Interpreter.h"

#include <deque>
#include <map>
#include <memory>

namespace shoal::interp {

using TensorRef = std::shared_ptr<const Tensor>;

/// One collective, or one message, between the moment that its first member arrives and the moment
/// that all have taken their result.
struct Transfer {
  llvm::SmallVector<mlir::Operation *> ops; ///< per member, null until it arrived
  llvm::SmallVector<TensorRef> inputs;      ///< per member
  llvm::SmallVector<TensorRef> results;     ///< per member, once done
  bool done = false;
};

/// A rank's part in a transfer.
struct Ticket {
  std::shared_ptr<Transfer> transfer;
  unsigned member = 0;
  mlir::Operation *op = nullptr; ///< the op whose result the transfer gives (recv, wait, ...)
};

/// What nobody defines: NaN, or a loud number.
Tensor makePadding(mlir::RankedTensorType type);

/// A collective's results, by definition of the op, one per member of the group. `inputs` are the
/// members' operands (empty tensors' place is taken by null for a barrier).
mlir::FailureOr<llvm::SmallVector<Tensor>> evaluateCollective(mlir::Operation *op,
                                                              llvm::ArrayRef<TensorRef> inputs);

/// The shard that a member keeps; local, nobody is waited for.
Tensor evaluateAllSlice(dist::AllSliceOp op, const Tensor &input, int64_t member);

/// "dist.send at file:3:5".
std::string describe(mlir::Operation *op);

class Rendezvous {
public:
  Rendezvous(dist::MeshAttr mesh, Precision precision) : mesh(mesh), precision(precision) {}

  /// Enters a collective (or barrier, or permute_start) on `axes`; the last member to arrive
  /// completes it.
  mlir::FailureOr<Ticket> join(mlir::Operation *op, dist::AxesAttr axes, int64_t position,
                               TensorRef input);
  mlir::FailureOr<Ticket> send(dist::SendOp op, int64_t position, int64_t peer, TensorRef input);
  mlir::FailureOr<Ticket> recv(dist::RecvOp op, int64_t position, int64_t peer);

  /// The rank that a mesh position is.
  int64_t rankOf(int64_t position) const;

private:
  struct Communicator {
    llvm::SmallVector<int64_t> members; ///< mesh positions, in order along the axes
    llvm::SmallVector<int64_t> joined;  ///< per member, how many collectives it has entered
    std::deque<std::shared_ptr<Transfer>> open;
    int64_t closed = 0; ///< collectives that are no longer in `open`
    /// Messages without partner, by (sender, receiver).
    std::map<std::pair<unsigned, unsigned>, std::deque<std::shared_ptr<Transfer>>> messages;
  };
  Communicator &communicator(dist::AxesAttr axes, int64_t position);
  mlir::FailureOr<Ticket> message(mlir::Operation *op, dist::AxesAttr axes, int64_t position,
                                  int64_t peer, TensorRef input);

  dist::MeshAttr mesh;
  Precision precision;
  /// By axes (their order is the order of members) and first member.
  std::map<std::pair<std::vector<std::string>, int64_t>, Communicator> communicators;
};

} // namespace shoal::interp

#endif // SHOAL_LIB_INTERPRETER_RENDEZVOUS_H
