// What of a training step runs once per micro-batch, and what once: every value is known before the first
// micro-batch, is one of each, is a sum over them, or is known after the last.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_MICROBATCHPLAN_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_MICROBATCHPLAN_H

#include "shoal/Interfaces/BatchDims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace shoal::dist {

class MicrobatchPlan {
public:
  enum class When {
    Before, ///< whole before the first micro-batch runs
    Each,   ///< has rows of the batch
    Sum,    ///< without rows: what micro-batches have of it adds up to the value
    After,  ///< made from sums, whole behind the last micro-batch
  };

  /// Of a model whose batches have `rows` rows, in `count` micro-batches; diagnoses what no split can give.
  static llvm::FailureOr<MicrobatchPlan> build(mlir::func::FuncOp model, int64_t rows, int64_t count);

  When getWhen(mlir::Value value) const { return whens.lookup(value); } // absent: Before
  /// Elements per batch row of a dimension, 0 where it holds none.
  int64_t getInner(mlir::Value value, unsigned dim) const { return dims.getInner(value, dim); }
  /// Whether the op works on rows or on sums: a copy of it runs in each micro-batch that asks for it.
  bool isRepeated(mlir::Operation *op) const { return repeated.contains(op); }
  /// Sums of inputs alone that micro-batches read whole: the count of a batch's targets. In program order; they
  /// are Before.
  llvm::ArrayRef<mlir::Value> getEarlySums() const { return early.getArrayRef(); }
  /// Sums that are read behind the micro-batches, or returned.
  llvm::SmallVector<mlir::Value> findSums(mlir::func::FuncOp model) const;

private:
  MicrobatchPlan(int64_t rows, int64_t count) : count(count), dims(rows, /*followsOneRow=*/true) {}

  llvm::LogicalResult followRows(mlir::func::FuncOp model);
  /// `found`: whether one more sum must be early, and what was decided must be decided again.
  llvm::LogicalResult decide(mlir::func::FuncOp model, bool &found);
  llvm::LogicalResult decideRows(mlir::Operation *op, bool &found);
  void decideSums(mlir::Operation *op, bool &found);
  bool makeEarly(mlir::Value value);
  /// Of the only micro-batch a sum is whole while it runs.
  bool isWhole(mlir::Value value) const { return count == 1 && getWhen(value) == When::Sum; }
  void findStatistics(mlir::func::FuncOp model);

  int64_t count;
  shoal::BatchDims dims;
  llvm::DenseMap<mlir::Value, When> whens;
  llvm::DenseSet<mlir::Value> ofParameters; // what parameters, buffers and state are in
  llvm::DenseSet<mlir::Operation *> repeated, statistics; // without rows, and read by ops with rows
  llvm::SetVector<mlir::Value> early;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_MICROBATCHPLAN_H
