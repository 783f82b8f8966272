// Everything the tools register: dialects, external models, passes, pipelines.
#include "shoal/Pipelines/Pipelines.h"

#include "shoal/Conversion/NNToLinalg.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Codegen/Passes.h"
#include "shoal/Interpreter/Interpreter.h"
#include "shoal/Interpreter/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace shoal {

void registerAllDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, dist::DistDialect, exec::ExecDialect, pipe::PipeDialect>();
  // What a model is written in, and what kernels pass through on their way to code.
  registry.insert<func::FuncDialect, arith::ArithDialect, scf::SCFDialect, linalg::LinalgDialect,
                  tensor::TensorDialect, memref::MemRefDialect, math::MathDialect,
                  LLVM::LLVMDialect, gpu::GPUDialect, NVVM::NVVMDialect>();
  registerLoweringModels(registry);
  interp::registerReferenceModels(registry);
}

void registerPipelines();

void registerAllPasses() {
  registerTransformsPasses();
  nn::registerShoalNNPasses();
  dist::registerShoalDistPasses();
  exec::registerShoalExecPasses();
  pipe::registerShoalPipePasses();
  codegen::registerShoalCodegenPasses();
  interp::registerShoalInterpreterPasses();
  registerPipelines();
}

} // namespace shoal
