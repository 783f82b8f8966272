// exec-kernels-to-nvvm: kernels of the gpu dialect to LLVM's, with PTX's own operations as NVVM ops.
#include "ExpandMath.h"

#include "shoal/Codegen/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

namespace shoal::codegen {
#define GEN_PASS_DEF_KERNELSTONVVMPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

using namespace mlir;

struct KernelsToNVVM : impl::KernelsToNVVMPassBase<KernelsToNVVM> {
  void runOnOperation() override {
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      if (failed(expandMathForGPU(module)))
        return signalPassFailure();
      // Products and sums contract to fma; nothing is reordered: threads are the parallelism.
      auto flags = arith::FastMathFlagsAttr::get(&getContext(), arith::FastMathFlags::contract);
      module.walk([&](arith::ArithFastMathInterface op) {
        op->setAttr(op.getFastMathAttrName(), flags);
      });
      if (failed(convert(module)))
        return signalPassFailure();
    }
  }

  LogicalResult convert(gpu::GPUModuleOp module) {
    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(&getContext(), options);
    populateGpuMemorySpaceAttributeConversions(types, [](gpu::AddressSpace space) -> unsigned {
      switch (space) {
      case gpu::AddressSpace::Global:
        return NVVM::kGlobalMemorySpace;
      case gpu::AddressSpace::Workgroup:
        return NVVM::kSharedMemorySpace;
      case gpu::AddressSpace::Private:
        return 0;
      }
      llvm_unreachable("all address spaces are listed");
    });
    LLVMConversionTarget target(getContext());
    // Not upstream's legality, by which LLVM's own floor, square root and others are illegal.
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addLegalOp<gpu::GPUModuleOp, gpu::ModuleEndOp>();
    // First alone: the patterns of gpu would call libdevice for what LLVM has an intrinsic.
    RewritePatternSet math(&getContext());
    populateMathToLLVMConversionPatterns(types, math);
    ConversionTarget mathTarget(getContext());
    mathTarget.addIllegalDialect<math::MathDialect>();
    mathTarget.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    if (failed(applyPartialConversion(module, mathTarget, std::move(math))))
      return failure();
    RewritePatternSet patterns(&getContext());
    populateSCFToControlFlowConversionPatterns(patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    populateGpuToNVVMConversionPatterns(types, patterns);
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return failure();
    // Bare pointers were wrapped for readers that are converted by now.
    OpPassManager passes(gpu::GPUModuleOp::getOperationName());
    passes.addPass(createReconcileUnrealizedCastsPass());
    return runPipeline(passes, module);
  }
};

} // namespace
} // namespace shoal::codegen
