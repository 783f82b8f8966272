// Which annotation brought a mesh axis to a value: recorded beside shardings by whoever places one, passed on by
// propagation, and told by the reasons of the collectives that move the axis.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_CAUSES_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_CAUSES_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::dist {

// What strategies call themselves, to those who read why a collective exists.
inline constexpr llvm::StringLiteral kDataParallel = "data parallelism";
inline constexpr llvm::StringLiteral kTensorParallel = "--tensor-parallel";
inline constexpr llvm::StringLiteral kSequenceParallel = "--sequence-parallel";
inline constexpr llvm::StringLiteral kContextParallel = "--context-parallel";
inline constexpr llvm::StringLiteral kZero = "--zero", kZeroStages[] = {"--zero 1", "--zero 2", "--zero 3"};

/// What would remove the collectives that a strategy brings, where it knows better than "leave it out". "{0}" stands
/// for the axes, "{1}" for the strategy; empty: nothing better.
struct StrategyRemovals {
  llvm::StringLiteral strategy;
  llvm::StringLiteral gradient, gather, scatter; // of a collective on a gradient, of other gathers and reduce-scatters
  llvm::StringLiteral refetch;                   // of a gather that fetches again what was dropped
  llvm::StringLiteral updated = "";              // of a gather of new parameters
  llvm::StringLiteral ring = "", exchange = "";  // of what passes around a ring, of an all-to-all
  llvm::StringLiteral reorder = "";              // of what passes to where another order has it
  bool ownGathers = false; // `gather` is of what the strategy gathers, of no dimension that an op needs whole
};
/// Of all strategies. Of a collective with causes of several the first tells.
llvm::ArrayRef<StrategyRemovals> getStrategyRemovals();

/// What a record has for an axis: a #dist.cause, or an array of several where partial values of several annotations
/// were added; null is none.
llvm::SmallVector<CauseAttr> listCauses(mlir::Attribute causes);
/// Both, in order of appearance. The same cause in several layers is one that names no layer; of many others the list
/// says that there are more.
mlir::Attribute joinCauses(mlir::Attribute causes, mlir::Attribute more);

/// The causes of an axis in a record (`dist.why`, may be null). A part of an axis that was split after the record was
/// written has its origin's.
mlir::Attribute findCauses(mlir::DictionaryAttr why, mlir::StringAttr axis);

/// The record of a value; null without one. Results of an op share theirs.
mlir::DictionaryAttr getWhy(mlir::Value value);
/// The record with one cause for all of `axes`, which keep the causes that they have.
mlir::DictionaryAttr addCause(mlir::DictionaryAttr why, llvm::ArrayRef<mlir::StringAttr> axes, CauseAttr cause);
/// What `dist.why` of the op says afterwards, too.
void addCause(mlir::Operation *op, llvm::ArrayRef<mlir::StringAttr> axes, CauseAttr cause);

/// What a strategy shards: `what`, in the layer of `op` if that has one.
CauseAttr getStrategyCause(mlir::MLIRContext *context, llvm::StringRef strategy, const llvm::Twine &what,
                           mlir::Operation *op = nullptr);
/// The annotation of a value, argument or result, that no strategy placed: by hand.
CauseAttr getHandCause(mlir::Value value);
/// The same of whatever an op says of its layout, and of a function's result.
CauseAttr getHandCause(mlir::Operation *op);
CauseAttr getResultHandCause(mlir::Operation *func, unsigned index);

/// The causes of an axis of a local or global value: its own record's, or where it has none and only moves or cuts
/// other values (a collective, a mask, a bucket) theirs. Null when nothing tells.
mlir::Attribute traceCauses(mlir::Value value, mlir::StringAttr axis);
/// The annotations by hand that take a value to an axis at its user, in a program that was not propagated: of what the
/// user makes or reads, or of the function's results that the value is returned as. Null for none.
mlir::Attribute findHandCauses(mlir::Operation *user, mlir::Value value, mlir::StringAttr axis);

/// A reason with the causes of both, for a collective that stands for two; by hand the words of both.
mlir::Attribute mergeReasons(mlir::Attribute reason, mlir::Attribute other);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_CAUSES_H
