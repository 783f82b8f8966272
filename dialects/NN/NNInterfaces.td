#ifndef SHOAL_NN_INTERFACES
#define SHOAL_NN_INTERFACES

include "mlir/IR/OpBase.td"

def OptimizerUpdateOpInterface : OpInterface<"OptimizerUpdateOpInterface"> {
  let cppNamespace = "::shoal::nn";
  let description = [{
    One optimizer step of one parameter: new values of the parameter and of its states, in the order of the results.
  }];
  let methods = [
    InterfaceMethod<"The parameter before the step.", "::mlir::Value", "getParam">,
    InterfaceMethod<"The parameter's gradient.", "::mlir::Value", "getGrad">,
    InterfaceMethod<"What the optimizer keeps of the parameter (moments), before the step.",
      "::llvm::SmallVector<::mlir::Value>", "getStates">,
    InterfaceMethod<[{
        Whether the new parameter is 0 where parameter, gradient and states are, as in the padding of a bucket.
      }], "bool", "keepsZeros">,
  ];
}

def MeanOpInterface : OpInterface<"MeanOpInterface"> {
  let cppNamespace = "::shoal::nn";
  let description = [{
    An op that can be a sum or the mean of the same terms. `nn-explicit-counts` makes every mean a sum that is
    divided by a count, so that no mean is differentiated or lowered: both refuse one, as a local program does.
  }];
  let methods = [
    InterfaceMethod<"Whether it is the mean.", "bool", "isMean">,
    InterfaceMethod<"Makes it the sum.", "void", "makeSum">,
    InterfaceMethod<[{
        Builds the number of terms, a scalar of the result's element type. `count` builds the product of the sizes of
        dimensions that all of the values have; which of their rows are real is its business.
      }], "::mlir::Value", "buildCount",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::function_ref<::mlir::Value(::mlir::ValueRange, ::llvm::ArrayRef<int64_t>)>":$count)>,
  ];
}

def BatchStatisticsOpInterface : OpInterface<"BatchStatisticsOpInterface"> {
  let cppNamespace = "::shoal::nn";
  let description = [{
    An op that takes means over dimensions. Where they hold the batch, its value depends on how many rows are real, and
    `nn-explicit-counts` replaces it by ops in which that count is a value.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds ops that compute the results. `count` builds the product of the sizes of dimensions of a value, as
        `MeanOpInterface` says.
      }], "::llvm::SmallVector<::mlir::Value>", "decomposeWithCount",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::function_ref<::mlir::Value(::mlir::ValueRange, ::llvm::ArrayRef<int64_t>)>":$count)>,
  ];
}

def TrainingModeOpInterface : OpInterface<"TrainingModeOpInterface"> {
  let cppNamespace = "::shoal::nn";
  let description = [{
    An op that does in training what it does not in inference (batch_norm; PyTorch's train() and eval()).
    `nn-select-results` replaces it where a program does not train.
  }];
  let methods = [
    InterfaceMethod<"Builds the results as inference has them.",
      "::llvm::SmallVector<::mlir::Value>", "buildInference", (ins "::mlir::OpBuilder &":$builder)>,
  ];
}

def IndexOperandOpInterface : OpInterface<"IndexOperandOpInterface"> {
  let cppNamespace = "::shoal::nn";
  let description = [{
    An op that takes elements of an operand as indices: of rows, of classes. Whoever makes or reads such numbers asks for
    their range (`findIndexRange`), so that a vocabulary is tested over its whole length, and data outside it are refused.
  }];
  let methods = [
    InterfaceMethod<[{
        What the elements of an operand index; none where they are no indices. Of floats: what they are a distribution over.
      }], "::std::optional<::shoal::nn::IndexRange>", "getIndexRange", (ins "unsigned":$operand)>,
  ];
}

def RandomOpInterface : OpInterface<"RandomOpInterface"> {
  let cppNamespace = "::shoal::nn";
  let description = [{
    An op that draws random numbers as a function of (seed, step, id, index in the whole tensor). The id is given by the user; `nn-seed` gives it
    the seed and the step.
  }];
  let methods = [
    InterfaceMethod<"What tells it from the other random ops of its model.", "int64_t", "getRandomId">,
    InterfaceMethod<"Whether it has its seed and step.", "bool", "isSeeded">,
    InterfaceMethod<"Gives it both, scalar `tensor<i64>`.", "void", "setSeed", (ins "::mlir::Value":$seed, "::mlir::Value":$step)>,
    InterfaceMethod<[{
        Makes it a part of a larger tensor: `offset`, a scalar `tensor<i64>`, is the row-major index there of its first element.
      }], "void", "setPart", (ins "::mlir::Value":$offset, "::llvm::ArrayRef<int64_t>":$globalShape)>,
  ];
}

#endif
