// exec-kernel-workspace: what kernels will need beside their operands, asked of their plans before
// anything is compiled.
#include "KernelPlan.h"

#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Conversion/NNToLinalg.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shoal::codegen {
#define GEN_PASS_DEF_KERNELWORKSPACEPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

struct KernelWorkspace : impl::KernelWorkspacePassBase<KernelWorkspace> {
  using KernelWorkspacePassBase::KernelWorkspacePassBase;

  void runOnOperation() override {
    if (target != "cpu" && target != "cuda") {
      getOperation().emitError("target must be cpu or cuda, got: '") << target << "'";
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> scratch = ModuleOp::create(getOperation().getLoc());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!exec::isKernel(func))
        continue;
      func::FuncOp copy = func.clone();
      scratch->push_back(copy);
      if (failed(convertKernelToLinalg(copy)))
        return signalPassFailure();
      bool isForGPU = target == "cuda" && exec::getMemory(func) == exec::Memory::device;
      auto plan = KernelPlan::create(copy, isForGPU ? PlanTarget::gpu() : PlanTarget::host());
      if (failed(plan))
        return signalPassFailure();
      func->removeAttr(exec::ExecDialect::kWorkspaceAttr);
      if ((*plan)->workspaceBytes > 0)
        func->setAttr(exec::ExecDialect::kWorkspaceAttr,
                      IntegerAttr::get(IntegerType::get(&getContext(), 64), (*plan)->workspaceBytes));
    }
  }
};

} // namespace
} // namespace shoal::codegen
