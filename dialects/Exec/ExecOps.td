#ifndef SHOAL_EXEC_OPS
#define SHOAL_EXEC_OPS

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::shoal::exec";
  let summary = "The rank program: buffers at fixed offsets, kernels, collectives on streams";
}

#endif
