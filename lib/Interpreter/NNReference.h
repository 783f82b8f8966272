// How reference semantics are attached: a free function per op becomes an external model of
// ReferenceOpInterface.
#ifndef SHOAL_LIB_INTERPRETER_NNREFERENCE_H
#define SHOAL_LIB_INTERPRETER_NNREFERENCE_H

#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Reference.h"

namespace shoal::interp {

using Operands = llvm::ArrayRef<const Tensor *>;
using Results = mlir::FailureOr<llvm::SmallVector<Tensor>>;

template <typename OpT, auto evaluateOp>
struct ReferenceModel : ReferenceOpInterface::ExternalModel<ReferenceModel<OpT, evaluateOp>, OpT> {
  Results evaluate(mlir::Operation *op, Operands operands) const {
    return evaluateOp(llvm::cast<OpT>(op), operands);
  }
};

template <typename OpT, auto evaluateOp> void attachReference(mlir::MLIRContext &context) {
  OpT::template attachInterface<ReferenceModel<OpT, evaluateOp>>(context);
}

/// The reference of an update that divides by what gradients have been.
template <typename OpT, auto evaluateOp, auto amplifyErrorOf>
struct UpdateModel
    : ReferenceOpInterface::ExternalModel<UpdateModel<OpT, evaluateOp, amplifyErrorOf>, OpT> {
  Results evaluate(mlir::Operation *op, Operands operands) const {
    return evaluateOp(llvm::cast<OpT>(op), operands);
  }
  std::vector<double> amplifyError(mlir::Operation *op, llvm::function_ref<double(mlir::Value)> scalarOf,
                                   llvm::ArrayRef<const Tensor *> results, double off) const {
    return amplifyErrorOf(llvm::cast<OpT>(op), scalarOf, results, off);
  }
};

/// Zeros of an op's (only) result.
inline Tensor resultOf(mlir::Operation *op, unsigned number = 0) {
  return Tensor(llvm::cast<mlir::RankedTensorType>(op->getResult(number).getType()));
}

inline Results single(Tensor tensor) {
  llvm::SmallVector<Tensor> results;
  results.push_back(std::move(tensor));
  return results;
}

void attachAttentionReferences(mlir::MLIRContext &context);
void attachElementwiseReferences(mlir::MLIRContext &context);
void attachShapeReferences(mlir::MLIRContext &context);
void attachEmbeddingReferences(mlir::MLIRContext &context);
void attachReductionReferences(mlir::MLIRContext &context);
void attachNormReferences(mlir::MLIRContext &context);
void attachLossReferences(mlir::MLIRContext &context);
void attachRandomReferences(mlir::MLIRContext &context);
void attachUpdateReferences(mlir::MLIRContext &context);

} // namespace shoal::interp

#endif // SHOAL_LIB_INTERPRETER_NNREFERENCE_H
