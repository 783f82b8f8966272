// exec-kernels-to-llvm: one conversion of all dialects that a bufferized kernel uses, then the C
// entries that the runtime calls.
#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace shoal::codegen {
#define GEN_PASS_DEF_KERNELSTOLLVMPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

using namespace mlir;

struct KernelsToLLVM : impl::KernelsToLLVMPassBase<KernelsToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<std::string> kernels;
    for (auto func : module.getOps<func::FuncOp>())
      if (exec::isKernel(func)) {
        kernels.push_back(func.getName().str());
        func->removeAttr(exec::ExecDialect::kWorkspaceAttr); // an argument like any other by now
      }
    if (failed(expandMath()) || failed(convert()))
      return signalPassFailure();
    for (const std::string &name : kernels)
      createEntry(module.lookupSymbol<LLVM::LLVMFuncOp>(name));
  }

  /// What LLVM would turn into calls that do not vectorize (tanh, erf) or do not link (bf16
  /// rounding).
  LogicalResult expandMath() {
    ModuleOp module = getOperation();
    RewritePatternSet patterns(&getContext());
    populatePolynomialApproximateTanhPattern(patterns);
    populatePolynomialApproximateErfPattern(patterns);
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsAndFoldGreedily(module, std::move(patterns))))
      return failure();
    // In double precision only libm is exact enough.
    module.walk([&](Operation *op) {
      if (isa<math::TanhOp, math::ErfOp>(op))
        callLibm(op);
    });
    // Reassociation and contraction let loops vectorize; NaN and infinity keep their meaning, so
    // that a loss that diverges is seen.
    using arith::FastMathFlags;
    auto flags = arith::FastMathFlagsAttr::get(
        &getContext(), FastMathFlags::reassoc | FastMathFlags::nsz | FastMathFlags::contract |
                           FastMathFlags::arcp | FastMathFlags::afn);
    module.walk(
        [&](arith::ArithFastMathInterface op) { op->setAttr(op.getFastMathAttrName(), flags); });
    return success();
  }

  /// Calls the function of libm that has the op's name.
  void callLibm(Operation *op) {
    OpBuilder b(op);
    StringRef name = op->getName().stripDialect();
    if (!getOperation().lookupSymbol(name)) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(getOperation().getBody());
      auto type = b.getFunctionType(b.getF64Type(), b.getF64Type());
      b.create<func::FuncOp>(op->getLoc(), name, type).setPrivate();
    }
    op->replaceAllUsesWith(
        b.create<func::CallOp>(op->getLoc(), name, b.getF64Type(), op->getOperands()));
    op->erase();
  }

  LogicalResult convert() {
    LowerToLLVMOptions options(&getContext());
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(&getContext(), options);
    RewritePatternSet patterns(&getContext());
    populateSCFToControlFlowConversionPatterns(patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    populateMathToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    populateFuncToLLVMConversionPatterns(types, patterns);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns))))
      return failure();
    // Bare pointers were wrapped for readers that are converted by now.
    OpPassManager passes(ModuleOp::getOperationName());
    passes.addPass(createReconcileUnrealizedCastsPass());
    return runPipeline(passes, getOperation());
  }

  /// `void k(void *const *buffers)` around the body.
  static void createEntry(LLVM::LLVMFuncOp body) {
    OpBuilder b(body);
    Location loc = body.getLoc();
    std::string name = body.getName().str();
    body.setName(name + ".body");
    body.setLinkage(LLVM::Linkage::Internal);
    body.setPassthroughAttr(b.getStrArrayAttr({"noinline", "nounwind"}));
    auto pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), pointer);
    b.setInsertionPointAfter(body);
    auto entry = b.create<LLVM::LLVMFuncOp>(loc, name, type);
    entry.setVisibility_(LLVM::Visibility::Hidden);
    entry->setAttr(exec::ExecDialect::kKernelAttr, b.getUnitAttr());
    body->removeAttr(exec::ExecDialect::kKernelAttr);
    Block *block = entry.addEntryBlock(b);
    b.setInsertionPointToStart(block);
    SmallVector<Value> buffers;
    for (unsigned k = 0; k < body.getNumArguments(); ++k) {
      Value slot = b.create<LLVM::GEPOp>(loc, pointer, pointer, block->getArgument(0),
                                         LLVM::GEPArg(int32_t(k)));
      buffers.push_back(b.create<LLVM::LoadOp>(loc, pointer, slot));
    }
    b.create<LLVM::CallOp>(loc, body, buffers);
    b.create<LLVM::ReturnOp>(loc, ValueRange{});
  }
};

} // namespace
} // namespace shoal::codegen
