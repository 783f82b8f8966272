// Kernels to PTX with LLVM's -O3 pipeline and its NVPTX code generator; no CUDA toolkit is needed.
#include "shoal/Codegen/CUDA.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Codegen/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

namespace shoal::codegen {

using namespace mlir;

namespace {

constexpr const char *kTriple = "nvptx64-nvidia-cuda";

const llvm::Target &nvptxTarget() {
  static const llvm::Target *target = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string reason;
    const llvm::Target *found = llvm::TargetRegistry::lookupTarget(kTriple, reason);
    if (!found)
      llvm::report_fatal_error(llvm::StringRef(reason));
    return found;
  }();
  return *target;
}

/// PTX names have letters, digits, `_` and `$`; LLVM's printer does not quote others.
bool isPTXName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; });
}

std::unique_ptr<llvm::TargetMachine> createMachine(StringRef arch) {
  return std::unique_ptr<llvm::TargetMachine>(nvptxTarget().createTargetMachine(
      kTriple, arch, "", llvm::TargetOptions(), std::nullopt, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

} // namespace

void buildGPUKernelPipeline(OpPassManager &pm) {
  pm.addPass(createConvertNNToLinalgPass());
  pm.addPass(createKernelsToGPUPass());
  pm.addPass(createKernelsToNVVMPass());
}

bool isKnownGPU(StringRef arch) {
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      nvptxTarget().createMCSubtargetInfo(kTriple, "", ""));
  return info->isCPUStringValid(arch);
}

FailureOr<std::unique_ptr<llvm::Module>>
compileGPUKernels(ModuleOp module, StringRef arch, llvm::LLVMContext &context,
                  std::vector<std::string> &names) {
  if (!isKnownGPU(arch))
    return module.emitError("no GPU architecture that LLVM knows: '") << arch << "'", failure();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  for (auto func : module.getOps<func::FuncOp>())
    if (exec::isKernel(func) && exec::getMemory(func) == exec::Memory::device) {
      if (!isPTXName(func.getName()))
        return func.emitOpError("name of a GPU kernel must be of letters, digits, '_' and '$', got: '")
                   << func.getName() << "'",
               failure();
      kernels->push_back(func.clone());
      names.push_back(func.getName().str());
    }
  PassManager passes(module.getContext());
  buildGPUKernelPipeline(passes);
  if (failed(passes.run(*kernels)))
    return failure();
  OwningOpRef<ModuleOp> plain = ModuleOp::create(module.getLoc());
  for (auto gpuModule : kernels->getOps<gpu::GPUModuleOp>())
    for (Operation &op : gpuModule.getBody()->without_terminator())
      plain->push_back(op.clone());
  auto translated = translateModuleToLLVMIR(*plain, context, "kernels");
  if (!translated)
    return module.emitError("kernels cannot be translated to LLVM IR"), failure();
  auto machine = createMachine(arch);
  translated->setTargetTriple(kTriple);
  translated->setDataLayout(machine->createDataLayout());
  optimize(*translated, *machine);
  for (const llvm::Function &function : *translated)
    if (function.isDeclaration() && !function.isIntrinsic())
      return module.emitError("kernels call a function that PTX has not: '")
                 << function.getName() << "'",
             failure();
  return translated;
}

FailureOr<std::string> emitKernelsPTX(ModuleOp module, StringRef arch) {
  llvm::LLVMContext context;
  std::vector<std::string> names;
  auto compiled = compileGPUKernels(module, arch, context, names);
  if (failed(compiled))
    return failure();
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  auto machine = createMachine(arch); // outlives the passes
  machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  passes.run(**compiled);
  return text.str().str();
}

} // namespace shoal::codegen
