// The passes around loop emission: exec-bufferize-kernels, and exec-kernel-workspace, which
// asks the same question without changing the kernels.
#include "EmitLoops.h"

#include "shoal/Codegen/Passes.h"
#include "shoal/Conversion/NNToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace shoal::codegen {
#define GEN_PASS_DEF_BUFFERIZEKERNELSPASS
#define GEN_PASS_DEF_KERNELWORKSPACEPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

LogicalResult bufferize(func::FuncOp func) {
  auto plan = KernelPlan::create(func);
  return failed(plan) ? failure() : emitLoops(**plan);
}

struct BufferizeKernels : impl::BufferizeKernelsPassBase<BufferizeKernels> {
  void runOnOperation() override {
    for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (func->hasAttr("exec.kernel") && failed(bufferize(func)))
        return signalPassFailure();
  }
};

struct KernelWorkspace : impl::KernelWorkspacePassBase<KernelWorkspace> {
  void runOnOperation() override {
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(getOperation().getLoc());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr("exec.kernel"))
        continue;
      func::FuncOp copy = func.clone();
      scratch->push_back(copy);
      if (failed(convertKernelToLinalg(copy)) || failed(bufferize(copy)))
        return signalPassFailure();
      func->removeAttr("exec.workspace");
      if (Attribute bytes = scratch->lookupSymbol(func.getName())->getAttr("exec.workspace"))
        func->setAttr("exec.workspace", bytes);
    }
  }
};

} // namespace
} // namespace shoal::codegen
