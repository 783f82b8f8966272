// The pass that turns kernel bodies into linalg, and the registry of the ops' lowerings.
#include "shoal/Conversion/NNToLinalg.h"

#include "LinalgBuilder.h"
#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/Means.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shoal {

void registerLoweringModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    lowering::attachAttentionModels(*context);
    lowering::attachElementwiseModels(*context);
    lowering::attachShapeModels(*context);
    lowering::attachReductionModels(*context);
    lowering::attachNormModels(*context);
    lowering::attachRopeModels(*context);
    lowering::attachLossModels(*context);
    lowering::attachRandomModels(*context);
    lowering::attachUpdateModels(*context);
    lowering::attachLibraryModels(*context);
  });
}

LogicalResult convertKernelToLinalg(func::FuncOp kernel) {
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock())
    return kernel.emitOpError("a kernel must have a body of one block");
  for (Operation &op : llvm::make_early_inc_range(kernel.getBody().front().without_terminator())) {
    auto lowerable = dyn_cast<LoweringOpInterface>(op);
    if (!lowerable)
      continue; // already linalg, or rejected by what follows
    if (failed(nn::verifyNoMean(&op)))
      return failure();
    OpBuilder builder(&op);
    FailureOr<SmallVector<Value>> results = lowerable.lowerToLinalg(builder, op.getOperands());
    if (failed(results))
      return failure();
    op.replaceAllUsesWith(*results);
    op.erase();
  }
  return success();
}

namespace codegen {
#define GEN_PASS_DEF_CONVERTNNTOLINALGPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

struct ConvertNNToLinalg : impl::ConvertNNToLinalgPassBase<ConvertNNToLinalg> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr(exec::ExecDialect::kKernelAttr) && failed(convertKernelToLinalg(func)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace codegen
} // namespace shoal
