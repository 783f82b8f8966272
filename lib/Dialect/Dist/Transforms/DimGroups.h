// Which dimensions of a function's values are one: dimensions that hold the same factor of an op's sharding rule,
// and so on from op to op. Sharding one of them shards all, without communication, as far as the kinds of the
// factors allow. Strategies ask it what a model is made of, so that they need no names of ops.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_DIMGROUPS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_DIMGROUPS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"

#include <vector>

namespace shoal::dist {

/// The dimension that has the factor.
std::optional<unsigned> findDim(const TensorFactors &tensor, unsigned factor);

class DimGroups {
public:
  /// An op with its rule, and the group of every factor (kNone where no dimension is that factor alone).
  struct Entry {
    mlir::Operation *op;
    ShardingRule rule;
    llvm::SmallVector<unsigned> groups;
  };
  static constexpr unsigned kNone = ~0u;

  /// Of the ops of the function's block; diagnoses a rule that does not fit its op.
  static llvm::FailureOr<DimGroups> build(mlir::FunctionOpInterface func);

  unsigned getNumGroups() const { return classes.getNumClasses(); }
  /// The group of a value's dimension; kNone for a value that no op with a rule touches.
  unsigned find(mlir::Value value, unsigned dim) const;
  /// In program order: the ops that have a rule.
  llvm::ArrayRef<Entry> getEntries() const { return entries; }
  /// Whether some dimension of the group is more than that: made of several factors, or met by an op without
  /// a rule.
  bool isMixed(unsigned group) const { return mixed.test(group); }

private:
  void addValue(mlir::Value value);
  void join(Entry &entry, std::vector<unsigned> &mixedDims);

  std::vector<Entry> entries;
  llvm::DenseMap<mlir::Value, unsigned> first; // number of dimension 0
  llvm::IntEqClasses classes;
  llvm::BitVector mixed;
  unsigned numDims = 0;
};

/// Gives every model of the module, with its groups, to a strategy.
llvm::LogicalResult forEachModel(mlir::ModuleOp module,
                                 llvm::function_ref<llvm::LogicalResult(mlir::func::FuncOp, DimGroups &&)> annotate);

/// Whether sharding the factor costs the op whole tensors of traffic, or more: norms, rotations. A loss, the mean of
/// what its rows are worth, costs three numbers a token over sharded classes.
bool needsWhole(mlir::Operation *op, const Factor &factor);

/// Values by what they are made of: parameters alone (a weight, cast or reshaped), or inputs, too.
struct Origins {
  llvm::DenseSet<mlir::Value> parameters, inputs;
};
Origins findOrigins(mlir::FunctionOpInterface func);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_DIMGROUPS_H
