// exec-bufferize-kernels: a kernel plan as one function of loops that run one after the other.
#include "../Kernels/LoopEmitter.h"

#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shoal::codegen {
#define GEN_PASS_DEF_BUFFERIZEKERNELSPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

class HostLoopEmitter : public LoopEmitter {
  using LoopEmitter::LoopEmitter;

  FunctionOpInterface createFunction(FunctionType type) override {
    auto function = b.create<func::FuncOp>(loc, old.getName(), type);
    function.setVisibility(old.getVisibility());
    function->setAttr(exec::ExecDialect::kKernelAttr, b.getUnitAttr());
    if (plan.workspaceBytes > 0)
      function->setAttr(exec::ExecDialect::kWorkspaceAttr,
                        b.getI64IntegerAttr(plan.workspaceBytes));
    function.addEntryBlock();
    return function;
  }
  void createReturn() override { b.create<func::ReturnOp>(loc); }
};

struct BufferizeKernels : impl::BufferizeKernelsPassBase<BufferizeKernels> {
  void runOnOperation() override {
    for (auto func : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!exec::isKernel(func))
        continue;
      auto plan = KernelPlan::create(func, PlanTarget::host());
      if (failed(plan) || failed(HostLoopEmitter(**plan).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace shoal::codegen
