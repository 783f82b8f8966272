// Messages between ranks of a pipeline.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_MESSAGES_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_MESSAGES_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/BitVector.h"

namespace shoal::pipe {

/// The axis of a pipeline, and what is asked of it.
struct PipeAxis {
  dist::MeshAttr mesh;
  mlir::StringAttr name;

  unsigned getSize() const { return *mesh.getAxisSize(name); }
  /// The mesh positions of some of its ranks.
  llvm::BitVector getPositions(const llvm::BitVector &ranks) const;
  llvm::BitVector getPositions(unsigned rank) const {
    llvm::BitVector ranks(getSize());
    return getPositions(ranks.set(rank));
  }
  dist::AxesAttr getAxes() const { return dist::AxesAttr::get(name.getContext(), {name}); }
};

/// `what`: of which kind a message or reduction is; `asker`: what wants it. The cause is the schedule's.
dist::ReasonAttr getReason(mlir::MLIRContext *context, llvm::StringRef what, const llvm::Twine &asker);

/// One end of a message.
struct Message {
  unsigned peer;          ///< the rank at the other end
  mlir::Value sent;       ///< null where it is received
  mlir::Type type;
  dist::ReasonAttr reason;
  mlir::IntegerAttr microbatch = {};
  mlir::StringAttr scope = {}; ///< which action it is part of
};

/// What a rank sends and receives together, waiting for no others; one message alone needs no group. Returns what it
/// receives, in order.
llvm::SmallVector<mlir::Value> communicate(mlir::OpBuilder &b, mlir::Location loc, PipeAxis axis, unsigned rank,
                                           llvm::ArrayRef<Message> messages);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_MESSAGES_H
