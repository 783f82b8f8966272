// The sequence of a model, as strategies see it: the dimensions that are one with those that ops align (the queries and
// keys of attention), and shardings of values along one of them.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_SEQUENCEDIMS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_SEQUENCEDIMS_H

#include "DimGroups.h"

namespace shoal::dist {

/// A set of groups of dimensions, of which a value has at most one with more than one token.
class SequenceDims {
public:
  /// Of the ops that align dimensions. Diagnoses a value with two of them: no axis shards both.
  static llvm::FailureOr<SequenceDims> find(mlir::func::FuncOp func, const DimGroups &groups);

  bool empty() const { return set.none(); }
  bool contains(unsigned group) const { return group != DimGroups::kNone && set.test(group); }
  /// The value's dimension of the sequence.
  std::optional<unsigned> findDim(mlir::Value value) const;

private:
  SequenceDims(const DimGroups &groups, llvm::BitVector set) : groups(&groups), set(std::move(set)) {}

  const DimGroups *groups;
  llvm::BitVector set;
};

/// The axes that shard each group of dimensions by what is annotated so far: of the first value that tells.
class GroupAxes {
public:
  GroupAxes(mlir::func::FuncOp func, const DimGroups &groups);
  llvm::ArrayRef<mlir::StringAttr> get(unsigned group) const {
    return group == DimGroups::kNone ? llvm::ArrayRef<mlir::StringAttr>() : axes[group];
  }

private:
  std::vector<llvm::SmallVector<mlir::StringAttr, 1>> axes;
};

/// A sharding of a value that says how one of its dimensions lies and leaves the others open.
ShardingAttr shardAlong(mlir::FlatSymbolRefAttr mesh, mlir::Value value, unsigned dim,
                        llvm::ArrayRef<mlir::StringAttr> axes);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_SEQUENCEDIMS_H
