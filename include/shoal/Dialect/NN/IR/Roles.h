// What the arguments and results of a model are: inputs, parameters, state, losses. One place that
// reads the `nn.*` attributes, so that passes ask for roles and not for attribute names.
#ifndef SHOAL_DIALECT_NN_IR_ROLES_H
#define SHOAL_DIALECT_NN_IR_ROLES_H

#include "shoal/Dialect/NN/IR/ReservedNames.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace shoal::nn {

/// On an `nn.output` result: which of its dimensions holds the rows of the batch, so that the rows which a
/// short batch lacks are not written. Set by `nn-explicit-counts`; absent when it holds none.
inline constexpr llvm::StringLiteral kBatchDimAttr = "nn.batch_dim";

/// On a batched input, i64: the rows of the batch, which the input holds as [micro-batch, row, ...]. Set by `dist-microbatch`.
inline constexpr llvm::StringLiteral kBatchRowsAttr = "nn.batch_rows";

/// On a model: it computes the loss beside a training step, and updates nothing.
inline constexpr llvm::StringLiteral kEvaluationAttr = "nn.evaluation";

enum class ArgRole { None, Input, Param, Buffer, State, Step, ValidRows, Seed };

/// Whether a result may say that it updates arguments of the role, which outlive a step. The seed does too, and
/// never changes.
inline bool isUpdatable(ArgRole role) {
  return role == ArgRole::Param || role == ArgRole::Buffer || role == ArgRole::State ||
         role == ArgRole::Step;
}

/// The role of a function argument, and the name by which files and `nn.updates` know it
/// ("step", "valid_rows" and "seed" for those; empty without a role).
ArgRole getArgRole(mlir::FunctionOpInterface func, unsigned index);
llvm::StringRef getArgName(mlir::FunctionOpInterface func, unsigned index);

/// What a result of a model is; it may be several of these.
enum class ResultRole { Loss, Metric, Output, Grad, Updates };

/// All of them, in the order in which messages ask.
inline constexpr ResultRole kResultRoles[] = {ResultRole::Loss, ResultRole::Metric, ResultRole::Output,
                                              ResultRole::Grad, ResultRole::Updates};

/// The attribute that says so: "nn.loss", a unit, or that of the others, which hold a name.
llvm::StringRef getRoleAttr(ResultRole role);

/// A role of a result, and its name there: of the output, of the parameter whose gradient it is, of the argument that
/// it replaces; "loss".
struct NamedRole {
  ResultRole role;
  llvm::StringRef name;
};
llvm::SmallVector<NamedRole, 1> getResultRoles(mlir::FunctionOpInterface func, unsigned index);

/// The shape in files of a parameter, where it is not the argument's own.
std::optional<llvm::ArrayRef<int64_t>> getFileShape(mlir::FunctionOpInterface func, unsigned index);

/// Whether a shape in files has as many elements as the whole tensor.
bool holdsAsMany(mlir::DenseI64ArrayAttr shape, mlir::RankedTensorType type);

/// What the elements of an input index, where `nn-bound-indices` or the user says so.
std::optional<IndexRange> getIndexRange(mlir::FunctionOpInterface func, unsigned index);

/// Whether the argument is an input with a sample dimension.
bool isBatchedInput(mlir::FunctionOpInterface func, unsigned index);

/// The sample dimension of a batched input: the first, or the second behind the micro-batches.
inline unsigned getBatchDim(mlir::FunctionOpInterface func, unsigned index) {
  return func.getArgAttr(index, kBatchRowsAttr) ? 1 : 0;
}

/// Whether some input has a sample dimension, which data parallelism splits.
bool hasBatchedInput(mlir::FunctionOpInterface func);

/// The rows of a whole batch, which all batched inputs have as their first dimension or in micro-batches, or an
/// error; 0 without any. `wholeType` tells the type that an argument is a shard of, where it may be one.
llvm::FailureOr<int64_t>
getBatchRows(mlir::FunctionOpInterface func,
             llvm::function_ref<mlir::RankedTensorType(unsigned)> wholeType = nullptr);

/// What a parameter, buffer or state begins with: zeros and ones are constants, `a` and `b` the bounds of
/// `uniform` or mean and deviation of `normal`.
struct InitialValue {
  Init kind = Init::constant;
  double a = 0, b = 0;
};
std::optional<InitialValue> getInitialValue(mlir::FunctionOpInterface func, unsigned index);
/// The same of a role by itself, `#nn.param<...>`; none of other attributes.
std::optional<InitialValue> getInitialValue(mlir::Attribute role);

/// The arguments of a function by name, read once for passes that ask for many.
class ArgTable {
public:
  explicit ArgTable(mlir::FunctionOpInterface func);
  /// The argument of that name, if any; of equal names the first.
  std::optional<unsigned> find(llvm::StringRef name) const;

private:
  llvm::DenseMap<llvm::StringRef, unsigned> indices; // keys live in attributes
};

/// The first argument of that role, if any.
std::optional<unsigned> findArg(mlir::FunctionOpInterface func, ArgRole role);

/// Whether the function says what its arguments or results are: it is a model.
bool isModel(mlir::FunctionOpInterface func);
/// Whether a result is a gradient: it is a training step.
bool hasGradient(mlir::FunctionOpInterface func);
/// The result that is minimised, if any.
std::optional<unsigned> findLoss(mlir::FunctionOpInterface func);

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_ROLES_H
