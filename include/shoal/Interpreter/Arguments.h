// Arguments to run a function with: parameters and state as a run of the program starts them,
// random inputs. All are functions of (seed, name, step, index), so one device and all ranks draw
// the same.
#ifndef SHOAL_INTERPRETER_ARGUMENTS_H
#define SHOAL_INTERPRETER_ARGUMENTS_H

#include "shoal/Interpreter/Parts.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal::interp {

struct ArgumentOptions {
  uint64_t seed = 1;
  /// Parameters that start constant (zeros, ones) get noise, so that a wrong factor on them shows.
  bool perturb = false;
  /// Odd steps have fewer valid rows than the batch.
  bool shortBatches = false;
};

/// The function of that name; without a name the module's model, or its only function with a body.
mlir::FailureOr<mlir::func::FuncOp> findFunction(mlir::ModuleOp module, llvm::StringRef name);

/// The type of the whole tensor that an argument is, or is a piece of (`dist.global`).
mlir::RankedTensorType wholeType(mlir::FunctionOpInterface func, unsigned index);

/// The whole value of an argument at a step. Integer targets of a cross_entropy lie in the range of
/// its classes, some are its ignore_index; float targets are probabilities.
mlir::FailureOr<Tensor> makeArgument(mlir::FunctionOpInterface func, unsigned index, int64_t step,
                                     const ArgumentOptions &options);

/// Whether the argument is new in every step (inputs and valid rows), unlike parameters and state.
bool isFreshEachStep(mlir::FunctionOpInterface func, unsigned index);

/// What a result is called in reports: "loss", "logits", "gradient of w1", "new w1"; empty when the
/// function does not say.
std::string describeResult(mlir::FunctionOpInterface func, unsigned result);

/// The whole values of the parts of an argument: its own, or those of the tensors in its bucket.
mlir::FailureOr<TensorList> makeWholes(mlir::FunctionOpInterface func, unsigned index, int64_t step,
                                       const ArgumentOptions &options);

/// The arguments of every rank, cut from the whole tensors of each argument by `dist.global`; arguments without it are
/// the same on every rank.
mlir::FailureOr<std::vector<TensorList>> distribute(mlir::func::FuncOp func, dist::MeshAttr mesh,
                                                    llvm::ArrayRef<TensorList> wholes);

} // namespace shoal::interp

#endif // SHOAL_INTERPRETER_ARGUMENTS_H
