#include "EmulatedGPU.h"

#include "shoal/Codegen/CUDA.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/bit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <barrier>
#include <thread>
#include <vector>

namespace {

/// Where this thread stands in the launch.
struct Place {
  unsigned thread, threads, block, blocks;
  std::barrier<> *barrier;
};
thread_local Place place;

} // namespace

// What retargeted kernels call instead of NVVM's intrinsics.
extern "C" {
unsigned shoal_emulated_tid_x() { return place.thread; }
unsigned shoal_emulated_ntid_x() { return place.threads; }
unsigned shoal_emulated_ctaid_x() { return place.block; }
unsigned shoal_emulated_nctaid_x() { return place.blocks; }
void shoal_emulated_barrier0() { place.barrier->arrive_and_wait(); }
// Without AVX512-BF16 LLVM selects between values of bf16 as f32, and rounds by this, which Debian
// 12's libgcc lacks. The values are bf16 already, so their low half is zero.
__bf16 __truncsfbf2(float value) {
  return llvm::bit_cast<__bf16>(uint16_t(llvm::bit_cast<uint32_t>(value) >> 16));
}
}

namespace shoal::test {

using namespace mlir;

/// Replaces reads of special registers and barriers by calls, and moves shared memory to globals.
static bool retarget(llvm::Module &module, const std::vector<std::string> &kernels) {
  for (llvm::Function &function : llvm::make_early_inc_range(module)) {
    StringRef name = function.getName();
    if (!name.starts_with("llvm.nvvm."))
      continue;
    std::string callee;
    if (name.consume_front("llvm.nvvm.read.ptx.sreg."))
      callee = "shoal_emulated_" + name.str();
    else if (name == "llvm.nvvm.barrier0")
      callee = "shoal_emulated_barrier0";
    else
      return false;
    std::replace(callee.begin(), callee.end(), '.', '_');
    // Not the attributes: a barrier does touch memory.
    auto *type = function.getFunctionType();
    function.replaceAllUsesWith(module.getOrInsertFunction(callee, type).getCallee());
    function.eraseFromParent();
  }
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = dyn_cast<llvm::CallInst>(&instruction);
            call && call->getCalledFunction() && !call->getCalledFunction()->isIntrinsic())
          call->setAttributes({});
  // Pointers to address space 3 have the layout of others here: x86 keeps their number as it is.
  if (auto *annotations = module.getNamedMetadata("nvvm.annotations"))
    annotations->eraseFromParent();
  auto &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  for (const std::string &name : kernels) {
    llvm::Function *body = module.getFunction(name);
    body->setName(name + ".body");
    auto *entry =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", entry));
    std::vector<llvm::Value *> buffers;
    for (unsigned k = 0; k < body->arg_size(); ++k)
      buffers.push_back(
          b.CreateLoad(pointer, b.CreateConstGEP1_32(pointer, entry->getArg(0), k)));
    b.CreateCall(body, buffers);
    b.CreateRetVoid();
  }
  return true;
}

FailureOr<codegen::KernelObjects> compileForEmulatedGPU(ModuleOp module) {
  codegen::KernelObjects code;
  llvm::LLVMContext context;
  auto translated = codegen::compileGPUKernels(module, "sm_80", context, code.kernels);
  if (failed(translated))
    return failure();
  if (!retarget(**translated, code.kernels))
    return module.emitError("kernels use an operation that the emulated GPU lacks"), failure();
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::string triple = llvm::sys::getDefaultTargetTriple(), reason;
  const llvm::Target *native = llvm::TargetRegistry::lookupTarget(triple, reason);
  std::unique_ptr<llvm::TargetMachine> machine(native->createTargetMachine(
      triple, "", "", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Less));
  (*translated)->setTargetTriple(triple);
  (*translated)->setDataLayout(machine->createDataLayout());
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  passes.run(**translated);
  code.objects.push_back(std::string(buffer.data(), buffer.size()));
  return code;
}

void launchEmulated(shoal_rt_kernel kernel, void *const *buffers, unsigned blocks,
                    unsigned threadsPerBlock) {
  for (unsigned block = 0; block < blocks; ++block) {
    std::barrier<> barrier(threadsPerBlock);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < threadsPerBlock; ++thread)
      threads.emplace_back([&, thread] {
        place = {thread, threadsPerBlock, block, blocks, &barrier};
        kernel(buffers);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
}

} // namespace shoal::test
