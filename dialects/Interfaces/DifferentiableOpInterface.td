#ifndef SHOAL_DIFFERENTIABLE_OP_INTERFACE
#define SHOAL_DIFFERENTIABLE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::shoal";
  let description = [{
    The op's gradient as a vector-Jacobian product built from ops that have the four
    interfaces themselves. Ops that are constant in all operands (compare) yield null cotangents.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the cotangents of the operands from those of the results. `cotangents` holds one
        value per result (null where no gradient flows); the returned list holds one value per
        operand, null where none flows (integers, constants). Only operands whose bit in `needed`
        is set have to be computed. An op that has no gradient emits an error and fails.
      }],
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildVJP",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$cotangents,
           "const ::llvm::BitVector &":$needed)>,
  ];
}

#endif
