// Follows the sample dimension of batched inputs through the ops of a model, by their sharding
// rules alone.
//
// A dimension descends from the batch when its elements are ordered by batch row first: dimension
// size = batch size * `inner`, and the rows [0, valid) are the elements [0, valid * inner). A
// transpose moves such a dimension, a reshape may merge it with those behind it; where rows come to
// lie scattered, the value has lost its batch dimension and cannot be masked any more.
#ifndef SHOAL_INTERFACES_BATCHDIMS_H
#define SHOAL_INTERFACES_BATCHDIMS_H

#include "shoal/Interfaces/ShardingRule.h"

#include "llvm/ADT/DenseMap.h"

namespace shoal {

/// An op's factors that hold the batch, major to minor; elements per row inside the last.
struct BatchFactors {
  llvm::SmallVector<unsigned> factors;
  int64_t inner = 1;

  bool operator==(const BatchFactors &other) const = default;
};

class BatchDims {
public:
  /// A batch of one row is followed where that is asked for: masks of one row there are none.
  explicit BatchDims(int64_t batchSize, bool followsOneRow = false)
      : batchSize(batchSize), followsOneRow(followsOneRow) {}

  /// Elements per batch row along the dimension, 0 where it does not descend from the batch.
  int64_t getInner(mlir::Value value, unsigned dim) const;
  void setInner(mlir::Value value, unsigned dim, int64_t inner);
  /// The op that scattered the rows of this value, null when none did.
  mlir::Operation *getLostAt(mlir::Value value) const { return lostAt.lookup(value); }
  bool isBatched(mlir::Value value) const {
    return inners.contains(value) || lostAt.contains(value);
  }

  /// The batch in the op's factors, as its operands bring it.
  llvm::SmallVector<BatchFactors> getBatchFactors(mlir::Operation *op,
                                                  const ShardingRule &rule) const;
  /// Elements per batch row of a dimension made of `factors`: 0 when it holds none of the batch,
  /// nothing when its rows are scattered.
  static std::optional<int64_t> getInner(const ShardingRule &rule, llvm::ArrayRef<unsigned> factors,
                                         llvm::ArrayRef<BatchFactors> batches);
  /// Records the results of an op.
  void propagate(mlir::Operation *op, const ShardingRule &rule);
  /// Records what operands and results say of each other, also of operands that are made from nothing: a
  /// broadcast scalar, positions. Whether anything is new.
  bool join(mlir::Operation *op, const ShardingRule &rule);

private:
  std::optional<BatchFactors> splitOffBatch(const ShardingRule &rule, llvm::ArrayRef<unsigned> factors) const;
  void addBatchFactors(mlir::Value value, const TensorFactors &tensor, const ShardingRule &rule,
                       llvm::SmallVectorImpl<BatchFactors> &batches) const;

  int64_t batchSize;
  bool followsOneRow;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> inners;
  llvm::DenseMap<mlir::Value, mlir::Operation *> lostAt;
};

} // namespace shoal

#endif // SHOAL_INTERFACES_BATCHDIMS_H
