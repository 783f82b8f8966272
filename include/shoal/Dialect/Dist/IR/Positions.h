// What holds at one mesh position or at some: scalars that are made of the position and constants,
// and ops that only a set of positions runs (`dist.at`).
#ifndef SHOAL_DIALECT_DIST_IR_POSITIONS_H
#define SHOAL_DIALECT_DIST_IR_POSITIONS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shoal::dist {

/// What a scalar is at the position that is being looked at; a failure has been diagnosed.
using ScalarLookup = llvm::function_ref<llvm::FailureOr<mlir::Attribute>(mlir::Value)>;

/// The results of a scalar op at a mesh position: dist.axis_index, dist.position_constant, and any
/// op without regions that its own folder computes from constants. Emits an error for any other.
llvm::FailureOr<llvm::SmallVector<mlir::Attribute>>
foldAt(mlir::Operation *op, MeshAttr mesh, int64_t position, ScalarLookup lookup);

/// An integer of at most 64 bits, i1 as 0 or 1; emits an error for anything else.
llvm::FailureOr<int64_t> readInteger(mlir::Location loc, mlir::Attribute attr);

/// The value of an `index` at a mesh position; emits an error when it is not made of constants, the
/// position and ops that fold.
llvm::FailureOr<int64_t> evaluateAt(mlir::Value index, MeshAttr mesh, int64_t position);

/// The positions at which an op runs: those that its `dist.at` and that of the group around it name,
/// all without them.
llvm::BitVector getPositions(mlir::Operation *op, MeshAttr mesh);
/// Says that an op runs at these positions only; nothing when they are all.
void setPositions(mlir::Operation *op, const llvm::BitVector &positions);

/// The positions at which an op reads an operand: where it runs; a dist.select where it takes that one.
llvm::BitVector getReadPositions(mlir::OpOperand &use, MeshAttr mesh);
/// Whether some position may run both ops of one block.
bool mayMeet(mlir::Operation *a, mlir::Operation *b);
/// Whether two lists of positions, in order, have one in common; null: all positions.
bool haveCommon(mlir::DenseI64ArrayAttr a, mlir::DenseI64ArrayAttr b);

/// Checks an array of positions: in order, each once, inside the mesh, at least one.
llvm::LogicalResult verifyPositions(mlir::Operation *op, mlir::NamedAttribute attr, MeshAttr mesh);

/// A collective needs all of its group.
struct GroupGap {
  int64_t inside, missing; ///< positions of one group: one that enters, one that does not
};
std::optional<GroupGap> findGap(MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes,
                                const llvm::BitVector &positions);
/// Emits an error where a collective is not run by whole groups; messages have no group to enter.
llvm::LogicalResult verifyWholeGroups(CollectiveOpInterface op, MeshAttr mesh,
                                      const llvm::BitVector &positions);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_POSITIONS_H
