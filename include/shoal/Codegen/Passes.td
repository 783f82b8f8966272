#ifndef SHOAL_CODEGEN_PASSES
#define SHOAL_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def ConvertNNToLinalgPass : Pass<"convert-nn-to-linalg", "::mlir::ModuleOp"> {
  let summary = "kernel bodies from nn ops to linalg on tensors";
  let description = [{
    Every nn op in a function marked `exec.kernel` is replaced by what its LoweringOpInterface builds. Library calls (nn.matmul) and
    ops of other dialects in a kernel are an error: they should never have been outlined.

    ```mlir
    %1 = nn.relu %0 : tensor<8x4xf32>
    // becomes
    %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0) outs(%empty) {
      ^bb0(%x: f32, %out: f32):
        %2 = arith.maximumf %x, %zero : f32
        linalg.yield %2 : f32
    } -> tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def BufferizeKernelsPass : Pass<"exec-bufferize-kernels", "::mlir::ModuleOp"> {
  let summary = "kernels from linalg on tensors to fused loops that write into their destinations";
  let description = [{
    A kernel is a short straight line of `linalg.generic` ops on static shapes, so its loops are decided here directly: ops that read each
    other's values along the same rows share their outer loops, values that are used where they are made stay in registers, and what
    is left becomes a buffer as large as the loops that do not share it (often one row). One-shot bufferization and tile-and-fuse
    would give the same loops after more work, and leave allocations to clean up.

    Arguments become memrefs: the operands, then the results that `exec.inplace` does not put into an operand, then, when temporaries do not fit
    64 KiB of stack, a workspace whose size is recorded as `exec.workspace`. Nothing is allocated. Arguments are `llvm.noalias` and 64-byte aligned.

    ```mlir
    func.func private @k(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
    // becomes
    func.func private @k(%x: memref<8x4xf32> {llvm.noalias, llvm.align = 64}) attributes {exec.kernel}
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"];
}

def KernelWorkspacePass : Pass<"exec-kernel-workspace", "::mlir::ModuleOp"> {
  let summary = "records on each kernel how many bytes of workspace its code will need";
  let description = [{
    The arena is laid out before kernels are compiled, so their workspace must be known early. Plans a copy of each kernel as the target's code
    generator will, and keeps only `exec.workspace = bytes` (absent when none is needed).
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "code of which target: cpu or cuda">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def KernelsToLLVMPass : Pass<"exec-kernels-to-llvm", "::mlir::ModuleOp"> {
  let summary = "bufferized kernels to the LLVM dialect, one C entry per kernel";
  let description = [{
    Each kernel @k becomes `@k.body` with one pointer per buffer and `@k`, the entry that the runtime calls: `void k(void *const *buffers)`.
    The body stays a function of its own, since `noalias` is a promise about arguments.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def KernelsToGPUPass : Pass<"exec-kernels-to-gpu", "::mlir::ModuleOp"> {
  let summary = "kernels from linalg on tensors to functions of GPU threads";
  let description = [{
    The GPU's counterpart of exec-bufferize-kernels, from the same plan of loops, with parallel loops outside reductions. Each kernel becomes one
    `gpu.func` of the same name and the same buffers. Outermost loops that are parallel for all their ops are collapsed and dealt out to
    threads, so that an elementwise kernel has a thread per element and softmax a thread per row; outermost reductions are shared by the threads of
    a block and joined in a tree. A kernel in which threads need each other's values has its loops one after the other with barriers between, and the
    first block runs it; all others use every block. What is emitted is right under any one-dimensional launch of at most 256 threads per block.

    Temporaries of one iteration are a thread's own, up to 4 KiB; others lie in the workspace, the last buffer, where the CPU would put them on
    the stack: plan the program with `exec-kernel-workspace{target=cuda}`.

    ```mlir
    func.func private @k(%x: tensor<8x4xf32>) -> tensor<8x4xf32> attributes {exec.kernel}
    // becomes
    gpu.module @kernels {
      gpu.func @k(%x: memref<8x4xf32> {llvm.noalias, llvm.align = 64}, %y: memref<8x4xf32> {...}) kernel attributes {nvvm.maxntid = array<i32: 256>}
    }
    ```
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def KernelsToNVVMPass : Pass<"exec-kernels-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "GPU kernels to the LLVM and NVVM dialects";
  let description = [{
    One conversion of all dialects that a kernel of exec-kernels-to-gpu uses; buffers become bare pointers. Mathematical functions become
    arithmetic first, so that neither libdevice nor the CUDA toolkit is needed: in f32 MLIR's polynomials, in f64 argument reduction and series, right to a
    few units in the last place (powers: to 2^-53 times the exponent's magnitude). A function without an expansion is an error.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif
