#ifndef SHOAL_EXEC_DIALECT
#define SHOAL_EXEC_DIALECT

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::shoal::exec";
  let summary = "The rank program: buffers at fixed offsets, kernels, collectives on streams";
  let description = [{
    One step as a list of rows, the same on every rank but for rows that only some mesh positions run. `exec.arg`, `exec.buffer` and `exec.view` name ranges of one arena, or of a second one in the host's memory; every
    other op is a row that the runtime executes. A row on a stream starts when the rows before it on that stream have ended.
    A token is signalled when its row has ended; `exec.wait` makes another stream wait for it. Stream 0 computes, the
    others communicate. At the end stream 0 has waited for all of them.

    | attribute | on | meaning |
    | --- | --- | --- |
    | `exec.kernel` | `func.func` | a kernel: a body of `nn` ops on tensors |
    | `exec.inplace` | kernel | per result the operand whose buffer it overwrites, or -1 |
    | `exec.unaligned` | kernel argument or result | lies in a bucket, at a multiple of its element size only |
    | `exec.workspace` | kernel | bytes of scratch memory it is given as its last buffer |
    | `exec.host` | kernel | the host runs it, on buffers in its own memory |
    | `exec.class` | op of L1 and L2 | what the bytes of its results are counted as that overwrite nothing, where that is not plain: `"param"`, `"grad"`, `"optimizer"`, `"workspace"` |
    | `exec.classes` | `exec.call` | the same per result of a kernel, empty where none was said |
    | `exec.scope` | row, op of L2 | what it is part of, in the words of a timeline: `"F3@5"` is the forward pass of micro-batch 3 in stage 5, `"SF3@5"` sends what that makes, `"U"` is of the update, `"N"` exchanges the norm for which that waits |
    | `exec.at` | row, wait, argument | the mesh positions that run it, or hold it; all without it |

    A rank's program is what its position runs, on arguments that it holds: of others it has no bytes, and buffers and arguments of positions apart may lie on
    the same ones. Where a row does not run it does nothing, but keeps its place: it ends in the order of its stream, and then its token is signalled.
  }];
  let dependentDialects = ["::shoal::dist::DistDialect", "::mlir::func::FuncDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr llvm::StringLiteral kKernelAttr = "exec.kernel";
    static constexpr llvm::StringLiteral kInplaceAttr = "exec.inplace";
    static constexpr llvm::StringLiteral kUnalignedAttr = "exec.unaligned";
    static constexpr llvm::StringLiteral kWorkspaceAttr = "exec.workspace";
    static constexpr llvm::StringLiteral kHostAttr = "exec.host";
    static constexpr llvm::StringLiteral kClassAttr = "exec.class";
    static constexpr llvm::StringLiteral kClassesAttr = "exec.classes";
    static constexpr llvm::StringLiteral kAtAttr = "exec.at";
    static constexpr llvm::StringLiteral kScopeAttr = "exec.scope";

  private:
    void registerAttributes();
    void registerTypes();

  public:
  }];
}

#endif
