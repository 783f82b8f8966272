// Kernels to machine code with LLVM's -O3 pipeline, for a given processor. Kernels are dealt out to
// a few threads, each with an LLVM context of its own; every share becomes one object file.
#include "shoal/Codegen/Host.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Codegen/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include "HostMachine.h"

#include <thread>

using namespace mlir;

namespace shoal::codegen {

FailureOr<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(const HostTarget &target, function_ref<InFlightDiagnostic()> emitError) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string triple = llvm::sys::getDefaultTargetTriple(), reason;
  const llvm::Target *native = llvm::TargetRegistry::lookupTarget(triple, reason);
  if (!native)
    return emitError() << "no code generator for " << triple << ": " << reason, failure();
  std::string cpu = target.cpu, features = target.features;
  if (cpu.empty() || cpu == "native") {
    cpu = llvm::sys::getHostCPUName().str();
    std::string own;
    llvm::StringMap<bool> found = llvm::sys::getHostCPUFeatures();
    SmallVector<StringRef> names(found.keys());
    llvm::sort(names);
    for (StringRef name : names)
      own += (found[name] ? "+" : "-") + name.str() + ",";
    features = own + features;
  } else {
    std::unique_ptr<llvm::MCSubtargetInfo> info(native->createMCSubtargetInfo(triple, "", ""));
    if (!info->isCPUStringValid(cpu))
      return emitError() << "--cpu must name a processor that LLVM knows for " << triple
                         << ", got: '" << cpu << "'",
             failure();
  }
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      native->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_, std::nullopt,
                                  llvm::CodeGenOptLevel::Aggressive));
}

void optimizeForHost(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  // The cost model reads the processor from the functions.
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", machine.getTargetCPU());
      function.addFnAttr("target-features", machine.getTargetFeatureString());
      // An estimate with a Newton step gives NaN for rsqrt of 0 and infinity: 0 * inf.
      function.addFnAttr("reciprocal-estimates", "none");
    }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager cgscc;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  llvm::PassBuilder builder(&machine, tuning);
  // exp, log, pow, sin and cos of glibc's libmvec. LLVM would use the AVX2 variants on any processor.
  using llvm::ElementCount;
  static const llvm::VecDesc libmvec[] = {
#define TLI_DEFINE_LIBMVEC_X86_VECFUNCS
#include "llvm/Analysis/VecFuncs.def"
  };
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  if (machine.getTargetTriple().getArch() == llvm::Triple::x86_64) {
    bool hasAvx2 = machine.getMCSubtargetInfo()->checkFeatures("+avx2");
    std::vector<llvm::VecDesc> usable;
    for (const llvm::VecDesc &function : libmvec)
      if (hasAvx2 || function.getVectorFnName().starts_with("_ZGVb"))
        usable.push_back(function);
    library.addVectorizableFunctions(usable);
  }
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(cgscc);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, cgscc, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

std::string emitHostObject(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  passes.run(module);
  return std::string(buffer.data(), buffer.size());
}

void buildHostKernelPipeline(OpPassManager &pm) {
  pm.addPass(createConvertNNToLinalgPass());
  pm.addPass(createBufferizeKernelsPass());
  pm.addPass(createKernelsToLLVMPass());
}

namespace {

/// The kernels of a module, lowered to the LLVM dialect in a module of their own.
FailureOr<OwningOpRef<ModuleOp>> lowerKernels(ModuleOp module, std::vector<std::string> &names) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  for (auto func : module.getOps<func::FuncOp>())
    if (exec::isKernel(func)) {
      kernels->push_back(func.clone());
      names.push_back(func.getName().str());
    }
  PassManager passes(context);
  buildHostKernelPipeline(passes);
  if (failed(passes.run(*kernels)))
    return failure();
  return kernels;
}

/// A module of share `part` of `parts`: its kernels with their bodies, and what is no kernel's own.
OwningOpRef<ModuleOp> takeShare(ModuleOp module, unsigned part, unsigned parts) {
  llvm::StringSet<> others; // of other shares
  unsigned next = 0;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    if (func->hasAttr(exec::ExecDialect::kKernelAttr) && next++ % parts != part) {
      others.insert(func.getName());
      others.insert(func.getName().str() + ".body");
    }
  OwningOpRef<ModuleOp> share = ModuleOp::create(module.getLoc());
  share.get()->setAttrs(module->getAttrDictionary());
  for (Operation &op : *module.getBody())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op); !symbol || !others.contains(symbol.getName()))
      share->push_back(op.clone());
  return share;
}

} // namespace

FailureOr<KernelObjects> compileKernels(ModuleOp module, const HostTarget &target) {
  KernelObjects code;
  auto kernels = lowerKernels(module, code.kernels);
  if (failed(kernels))
    return failure();
  // Starting a thread is worth it for a handful of kernels.
  unsigned parts = std::min<unsigned>(std::max(1u, std::thread::hardware_concurrency()),
                                      (code.kernels.size() + 3) / 4);
  parts = std::clamp(parts, 1u, 8u);
  struct Share {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module;
    std::unique_ptr<llvm::TargetMachine> machine;
    std::string object;
  };
  std::vector<Share> shares(parts);
  for (unsigned part = 0; part < parts; ++part) {
    Share &share = shares[part];
    auto machine = createHostMachine(target, [&] { return module.emitError(); });
    if (failed(machine))
      return failure();
    share.machine = std::move(*machine);
    OwningOpRef<ModuleOp> own;
    if (parts > 1)
      own = takeShare(**kernels, part, parts);
    share.module = translateModuleToLLVMIR(own ? *own : **kernels, share.context, "kernels");
    if (!share.module)
      return module.emitError("kernels cannot be translated to LLVM IR"), failure();
  }
  auto compile = [](Share &share) {
    optimizeForHost(*share.module, *share.machine);
    share.object = emitHostObject(*share.module, *share.machine);
  };
  std::vector<std::thread> threads;
  for (unsigned part = 1; part < parts; ++part)
    threads.emplace_back(compile, std::ref(shares[part]));
  compile(shares[0]);
  for (std::thread &thread : threads)
    thread.join();
  for (Share &share : shares)
    code.objects.push_back(std::move(share.object));
  return code;
}

FailureOr<std::string> emitKernelsLLVM(ModuleOp module, const HostTarget &target) {
  std::vector<std::string> names;
  auto kernels = lowerKernels(module, names);
  if (failed(kernels))
    return failure();
  auto machine = createHostMachine(target, [&] { return module.emitError(); });
  if (failed(machine))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(**kernels, context, "kernels");
  if (!translated)
    return module.emitError("kernels cannot be translated to LLVM IR"), failure();
  optimizeForHost(*translated, **machine);
  std::string text;
  llvm::raw_string_ostream stream(text);
  translated->print(stream, nullptr);
  return text;
}

} // namespace shoal::codegen
