#ifndef SHOAL_REFERENCE_OP_INTERFACE
#define SHOAL_REFERENCE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::shoal";
  let description = [{
    What the op means, written plainly: the oracle of the tests. Implemented as external models by
    `lib/Interpreter`, so that the dialect does not depend on it.
  }];
  let methods = [
    InterfaceMethod<"Computes the results on whole host tensors.",
      "::llvm::FailureOr<::llvm::SmallVector<::shoal::interp::Tensor>>", "evaluate",
      (ins "::llvm::ArrayRef<const ::shoal::interp::Tensor *>":$operands)>,
    InterfaceMethod<[{
        Of an update of a parameter: how far each element of the new value may be off, beyond rounding, where those of its gradient
        may be by `off`. `scalarOf` knows the scalar operands. Nothing where a gradient enters the new value as it is.
      }], "std::vector<double>", "amplifyError",
      (ins "::llvm::function_ref<double(::mlir::Value)>":$scalarOf,
           "::llvm::ArrayRef<const ::shoal::interp::Tensor *>":$results, "double":$off), "", [{ return {}; }]>,
  ];
}

#endif
