#ifndef SHOAL_POSITIONED_OP_INTERFACE
#define SHOAL_POSITIONED_OP_INTERFACE

include "mlir/IR/OpBase.td"

def PositionedOpInterface : OpInterface<"PositionedOpInterface"> {
  let cppNamespace = "::shoal";
  let description = [{
    An op for which it matters where in a dimension a row lies (dropout draws by its index, a causal mask compares it), and
    that can be told. Untold, row i is at position i. So a strategy may store the rows in another order, and the program
    means what it meant.
  }];
  let methods = [
    InterfaceMethod<"Whether a row of dimension `dim` of result 0 depends on its index there.", "bool", "dependsOnIndex",
      (ins "unsigned":$dim)>,
    InterfaceMethod<[{
        Says the position of each row of dimension `dim` of result 0: `positions` is `tensor<Sxi64>` in the order of the rows,
        whole on every device. An error where the op has positions already.
      }], "::llvm::LogicalResult", "setPositions", (ins "::mlir::Value":$positions, "unsigned":$dim)>,
  ];
}

#endif
