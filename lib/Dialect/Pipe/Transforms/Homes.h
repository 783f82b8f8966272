// On which ranks of a pipeline the values of a step are that its stages do not make.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_HOMES_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_HOMES_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Schedule/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace shoal::pipe {

/// The ranks that have a value, and those that need it. What comes from no stage, as a constant, every rank makes for
/// itself: it is free.
class Homes {
public:
  explicit Homes(unsigned ranks) : ranks(ranks) {}

  llvm::BitVector get(mlir::Value value) const {
    auto found = homes.find(value);
    return found == homes.end() ? llvm::BitVector(ranks, true) : found->second;
  }
  bool isFree(mlir::Value value) const { return !homes.contains(value); }
  void set(mlir::Value value, const llvm::BitVector &home) { homes[value] = home; }

  /// Adds ranks that need a value; whether they are new.
  bool need(mlir::Value value, const llvm::BitVector &by);

  /// Follows ops that are beside the stages, in order. They are where all that they read is, or everywhere if that is
  /// nowhere (each operand goes to all). An add of which no rank has both terms, or a rank that needs it but one, is a
  /// sum over stages, which is where any of its terms is: of the norm of a shared parameter's gradient, which its ranks
  /// all have, and another's, one rank could make the sum, and those that share would not have it.
  void follow(mlir::Operation *op);
  bool isSum(mlir::Operation *op) const { return sums.contains(op); }

private:
  unsigned ranks;
  llvm::DenseMap<mlir::Value, llvm::BitVector> homes, needs;
  llvm::DenseSet<mlir::Operation *> sums;
  llvm::DenseSet<mlir::Value> pending; // sums that only sums have read
};

/// Who reads a value: the ranks whose stages do, and whether the step beside its region does.
struct Readers {
  llvm::BitVector stages;
  bool rest = false;
};

/// Of what stands before the region over micro-batches (by op), and of the step's arguments (by value); what is made of
/// these alone is read through.
struct ReadersOf {
  llvm::MapVector<mlir::Operation *, Readers> ops;
  llvm::MapVector<mlir::Value, Readers> arguments;
};
ReadersOf findReaders(mlir::func::FuncOp func, dist::AccumulateOp loop, const Shape &shape);

/// The ranks of the arguments that the step replaces: those that have the new value or read the argument in a stage;
/// and who needs what the ops beside the stages make. `loop` is not yet unrolled.
Homes placeArguments(mlir::func::FuncOp func, dist::AccumulateOp loop, const Shape &shape, const ReadersOf &readers);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_HOMES_H
