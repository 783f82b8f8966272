#ifndef SHOAL_LOWERING_OP_INTERFACE
#define SHOAL_LOWERING_OP_INTERFACE

// How an op becomes something that runs: part of a kernel, rows of the rank program, or nothing.
include "mlir/IR/OpBase.td"

def LoweringOpInterface : OpInterface<"LoweringOpInterface"> {
  let cppNamespace = "::shoal";
  let description = [{
    What becomes of the op, and how. Implemented as external models by `lib/Conversion`. Kernels, views and constants build
    `linalg` on tensors, library calls rows of the rank program; passes ask for the kind and never for the op.
    What an op does in a kernel it is fused into follows from its sharding rule.
  }];
  let methods = [
    InterfaceMethod<"What becomes of the op.", "::shoal::LoweringKind", "getLoweringKind", (ins), "", [{
      return ::shoal::LoweringKind::Kernel;
    }]>,
    InterfaceMethod<"Builds linalg, tensor and arith ops that compute the results. An error for library calls.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "lowerToLinalg",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands), "", [{
        return $_op->emitOpError("is no part of a kernel: it is a library call");
      }]>,
    InterfaceMethod<[{
        Builds the rows of a library call, on stream 0. Every buffer lies at a multiple of its element size, the
        workspace at a multiple of 64 bytes. An error for everything else.
      }],
      "::llvm::LogicalResult", "lowerToRows", (ins "::shoal::exec::RowContext &":$rows), "", [{
        return $_op->emitOpError("is in no kernel (run exec-outline-kernels)");
      }]>,
    InterfaceMethod<"Whether the rows of a library call can add to what the buffer of its result holds (`RowContext::adds`).",
      "bool", "canAdd", (ins), "", [{ return false; }]>,
    InterfaceMethod<"Bytes of scratch memory that the rows of a library call share, for `RowContext::getWorkspace`.",
      "int64_t", "getWorkspaceBytes", (ins), "", [{ return 0; }]>,
  ];
}

#endif
