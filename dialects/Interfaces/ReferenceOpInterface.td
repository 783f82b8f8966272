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
  ];
}

#endif
