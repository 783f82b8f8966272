#ifndef SHOAL_LINALG_LOWERABLE_OP_INTERFACE
#define SHOAL_LINALG_LOWERABLE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def LinalgLowerableOpInterface : OpInterface<"LinalgLowerableOpInterface"> {
  let cppNamespace = "::shoal";
  let description = [{
    The op as a kernel body: `linalg` on tensors. Implemented as external models by
    `lib/Conversion/NNToLinalg`. Ops that are library calls (matmul) do not implement it
    and never enter a kernel. What an op does in a kernel it is fused into follows from its sharding rule.
  }];
  let methods = [
    InterfaceMethod<"Builds linalg, tensor and arith ops that compute the results.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "lowerToLinalg",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>,
  ];
}

#endif
