// Sharding rules: how an op's dimensions relate, told as factors.
//
// A factor is one index of the op's iteration space (an einsum letter). Every dimension of
// every operand and result is a list of factors, major to minor: one for most ops, several for
// reshapes that merge or split. Sharding a factor over mesh axes shards each dimension that holds
// it. This is the form of Shardy's OpShardingRule; partial values add `linear`.
#ifndef SHOAL_INTERFACES_SHARDINGRULE_H
#define SHOAL_INTERFACES_SHARDINGRULE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/BitVector.h"

namespace shoal {

/// How several partial values become one.
enum class ReduceKind { Sum, Max, Min };

enum class FactorKind {
  /// In operands and results alike; sharding it needs no communication.
  PassThrough,
  /// In operands, and not in all results. Sharding it leaves those that lack it partial, to be
  /// combined by `reduce`; through those that have it, it passes (attention_grad: query heads pass
  /// in dq and are summed in dk and dv).
  Reduction,
  /// Must be whole on every device.
  NeedReplication,
  /// May be sharded only after the op is replaced by its `decompose`.
  Decompose,
  /// Sharded together with the factor that it is aligned with or a reordering of, the op's `localize` lets the shards
  /// pass from device to device (attention: the keys, in a ring). Sharded alone it must be whole.
  Permutation,
};

struct Factor {
  int64_t size;
  FactorKind kind = FactorKind::PassThrough;
  ReduceKind reduce = ReduceKind::Sum;

  /// Whether a point of the results may be of elements anywhere along it.
  bool isReadAnywhere() const { return kind == FactorKind::NeedReplication || kind == FactorKind::Permutation; }
};

/// Two dimensions of one kind, as queries and keys are both of the sequence: the same axes may shard both at once. The
/// second one is a Permutation, and is sharded as the first one or whole.
struct AlignedFactors {
  unsigned lead, passing;
};

/// The rows of `lead` are those of `passing`, a Permutation, in another order, whose pieces go from device to device where
/// exactly so many devices shard both.
struct ReorderedFactors {
  unsigned lead, passing;
  int64_t shards;
};

/// Per dimension of a tensor, its factors, major to minor (indices into ShardingRule::factors).
/// A dimension of size 1 that is broadcast has no factor.
using TensorFactors = llvm::SmallVector<llvm::SmallVector<unsigned, 1>>;

struct ShardingRule {
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<TensorFactors> operands, results;
  /// Groups of operands in which the op is linear: when exactly the operands of one group are
  /// partial sums over an axis, the results are partial sums over it too. add: {0,1};
  /// matmul: {0}, {1}; div: {0}; a non-linear op: none.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> linear;
  /// Of factors of kind Permutation.
  llvm::SmallVector<AlignedFactors, 1> aligned;
  llvm::SmallVector<ReorderedFactors, 1> reordered;
  /// The kind of partial values that `linear` speaks of: a maximum over devices of maxima over
  /// other devices may wait as a sum of sums may.
  ReduceKind linearKind = ReduceKind::Sum;
  /// Only moves elements (reshape, transpose): partial values of any kind pass through.
  bool movesOnly = false;
  /// Factors of which the op asks which index it is at, as the positions of elements do: their order matters beyond
  /// what is sharded.
  llvm::SmallVector<unsigned> indexed;
  /// What padded elements of operand i become before the local op runs, where a sharded reduction
  /// factor is padded. Absent: the identity of the factor's `reduce`: 0 for sums, -inf for max,
  /// +inf for min. An op whose neutral operand is another one says so (cross_entropy's ignored
  /// target).
  llvm::SmallVector<std::optional<double>> padding;
  /// Operands that count for nothing, as long as they are finite, where the others hold their
  /// padding: the logits of an ignored target. So rows past the valid ones need no mask in them;
  /// what pads shards is not finite and does.
  llvm::SmallVector<unsigned> leftOut;
  /// Operands whose padding in shards is never read, whatever it holds: the rows of a table that no
  /// index names. They need no mask, which would be a copy of the table.
  llvm::SmallVector<unsigned> unread;

  unsigned addFactor(int64_t size, FactorKind kind = FactorKind::PassThrough,
                     ReduceKind reduce = ReduceKind::Sum) {
    factors.push_back({size, kind, reduce});
    return factors.size() - 1;
  }
};

/// Whether the rule has an entry for every dimension of the op's operands and results.
bool fits(const ShardingRule &rule, mlir::Operation *op);

/// Whether a tensor has a dimension of that factor.
bool holds(const TensorFactors &tensor, unsigned factor);

/// Whether an op multiplies two operands and sums over dimensions that both have.
bool isContraction(const ShardingRule &rule);

/// Multiplications and additions of the products of a contraction, 0 of any other op.
double flopsOfContraction(mlir::Operation *op, const ShardingRule &rule);

/// What leaves a reduction of elements of a type as it is: 0; the least value, the greatest. None
/// where a double cannot hold it, so that no mask can write it: the greatest i64.
std::optional<double> reductionIdentity(ReduceKind kind, mlir::Type elementType);

/// Elements of one of `parts` shards of a dimension: ceil(size / parts).
inline int64_t shardSize(int64_t size, int64_t parts) { return size / parts + (size % parts != 0); }

/// What `localize` may ask the partitioner.
class LocalizeContext {
public:
  virtual ~LocalizeContext() = default;
  /// The type of this device's shard of a result.
  virtual mlir::RankedTensorType localResultType(unsigned result) const = 0;
  /// The unsharded size of an operand's dimension.
  virtual int64_t globalOperandSize(unsigned operand, unsigned dim) const = 0;
  /// The global index of the first element of this device's shard along an operand's (or
  /// result's) dimension, as a tensor<i64>; null when the dimension is not sharded (offset 0).
  virtual mlir::Value operandOffset(mlir::OpBuilder &builder, unsigned operand,
                                    unsigned dim) const = 0;
  virtual mlir::Value resultOffset(mlir::OpBuilder &builder, unsigned result,
                                   unsigned dim) const = 0;

  // The devices that shard an operand's dimension, as a ring. Asked for Permutation factors and those that they are
  // aligned with or a reordering of, which nothing else than devices shards: only the partitioner has them.

  /// How many they are; 1 when the dimension is whole.
  virtual int64_t operandShards(unsigned operand, unsigned dim) const { return 1; }
  /// As operandOffset, of the shard of the device `back` places before this one, cyclically.
  virtual mlir::Value neighborOffset(mlir::OpBuilder &, unsigned operand, unsigned dim, int64_t back) const {
    llvm_unreachable("no ring: the dimension is whole");
  }
  /// Starts to send a local value, the part of `operand` or what is summed for it, to the device `forward` places behind
  /// this one, cyclically. `what` is on its way, for the reason that the collective tells. `finishShift` gives what has
  /// arrived from as many places before.
  virtual mlir::Value startShift(mlir::OpBuilder &, mlir::Value local, unsigned operand, unsigned dim, int64_t forward,
                                 llvm::StringRef what) const {
    llvm_unreachable("no ring: the dimension is whole");
  }
  virtual mlir::Value finishShift(mlir::OpBuilder &, mlir::Value started) const {
    llvm_unreachable("no ring: the dimension is whole");
  }
  /// As a tensor<i64>, the number among `ofShard` that is of this device's shard.
  virtual mlir::Value numberOfShard(mlir::OpBuilder &, unsigned operand, unsigned dim,
                                    llvm::ArrayRef<int64_t> ofShard) const {
    llvm_unreachable("no other devices: the dimension is whole");
  }
  /// Sends a local value, pieces of `operand` that are `what`, from the device of each shard to that of shard
  /// `targets[shard]`, a permutation of all. `where` they go, for the reason that the collective tells.
  virtual mlir::Value permute(mlir::OpBuilder &, mlir::Value local, unsigned operand, unsigned dim,
                              llvm::ArrayRef<int64_t> targets, llvm::StringRef what, llvm::StringRef where) const {
    llvm_unreachable("no other devices: the dimension is whole");
  }
};

/// The default `localize`: the same op with local operands and result types.
llvm::LogicalResult localizeByCloning(mlir::Operation *op, mlir::OpBuilder &builder,
                                      mlir::ValueRange operands, const LocalizeContext &ctx,
                                      llvm::SmallVectorImpl<mlir::Value> &results);

/// Rules that many ops share.
namespace rules {
/// Numpy broadcasting of every operand to the (single) result shape.
ShardingRule elementwise(mlir::Operation *op);
/// Every dimension of every operand and result needs replication.
ShardingRule replicated(mlir::Operation *op);
} // namespace rules

} // namespace shoal

#include "shoal/Dialect/Interfaces/ShardingRuleOpInterface.h.inc"

#endif // SHOAL_INTERFACES_SHARDINGRULE_H
