// MLIR text: parsed, verified, and, if it is valid, given to every pass of ours and to the pipelines
// of shoalc. A pass may refuse it with a diagnostic; what reaches the runtime must load. The parse is
// tried in a child first, see TrialParse.h.
#include "Target.h"
#include "TrialParse.h"

#include "core/program.h"
#include "shoal/Codegen/Emit.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Report/Page.h"
#include "shoal/Support/ModelText.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

using namespace mlir;

namespace {

// Every pass of the .td files, alone and as written.
constexpr const char *kPasses[] = {
#include "passes.inc"
};
// With options that change what they do most, and where one only works on what others leave.
constexpr const char *kVariants[] = {
    "nn-select-results{mode=infer}",
    "nn-convert-dtype{to=f64}",
    "nn-optimize{optimizer=adamw weight-decay=0.1 clip-grad-norm=1}",
    "exec-kernel-workspace{target=cuda}",
    "canonicalize",
    "exec-outline-kernels,convert-nn-to-linalg,exec-bufferize-kernels,exec-kernels-to-llvm",
    "exec-outline-kernels,convert-nn-to-linalg,exec-kernels-to-gpu,exec-kernels-to-nvvm",
};
// These run the program.
constexpr const char *kInterpreted[] = {"interpret{elements=0}", "interpret{all-ranks elements=0 precision=f64}"};

// Tensors of more elements are not interpreted: the fuzzer should not wait for them.
constexpr int64_t kMaxElements = 1 << 14;

bool isSmall(ModuleOp module) {
  int64_t elements = 0;
  auto add = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      int64_t count = 1;
      for (int64_t dim : tensor.getShape())
        count = dim < 0 || dim > kMaxElements ? kMaxElements + 1 : std::min(count * dim, kMaxElements + 1);
      elements = std::min(elements + count, 2 * kMaxElements);
    }
  };
  module.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      add(type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          add(type);
  });
  return elements <= kMaxElements;
}

bool hasSmallMesh(ModuleOp module) {
  bool small = true;
  module.walk([&](shoal::dist::MeshOp mesh) { small &= mesh.getMesh().getNumDevices() <= 64; });
  return small;
}

LogicalResult run(ModuleOp module, StringRef pipeline) {
  PassManager pm(module.getContext());
  if (failed(parsePassPipeline(pipeline, pm))) {
    std::fprintf(stderr, "fuzz: no such pipeline: %s\n", pipeline.str().c_str());
    std::abort();
  }
  return pm.run(module);
}

// The local program against the global one, as shoalc --verify-plan.
void verifyPlan(ModuleOp global, ModuleOp local) {
  std::string text;
  llvm::raw_string_ostream(text) << global;
  shoal::fuzz::InputFile reference(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  (void)run(local, "builtin.module(dist-verify-plan{steps=1 reference=" + reference.path() + "})");
}

// As shoalc, from whatever level the module is at.
void compile(ModuleOp module, const shoal::PlanOptions &plan) {
  auto build = [&](void (*pipeline)(OpPassManager &, const shoal::PlanOptions &)) {
    PassManager pm(module.getContext());
    pipeline(pm, plan);
    return pm.run(module);
  };
  if (!shoal::dist::isLocalProgram(module)) {
    if (failed(build(shoal::buildModelPipeline)) || failed(build(shoal::buildStepPipeline)) ||
        failed(build(shoal::buildPlanPipeline)))
      return;
    OwningOpRef<ModuleOp> global = module.clone();
    if (failed(build(shoal::buildLocalPipeline)))
      return;
    if (isSmall(*global) && isSmall(module))
      verifyPlan(*global, OwningOpRef<ModuleOp>(module.clone()).get());
  }
  shoal::report::Page page;
  if (OwningOpRef<ModuleOp> copy = module.clone();
      succeeded(run(*copy, "builtin.module(dist-fold-control-flow)")))
    (void)shoal::report::readLocal(*copy, plan.overlap, page);
  if (failed(build(shoal::buildExecPipeline)))
    return;
  if (FailureOr<shoal::rt::Report> report = shoal::codegen::emitReport(module, ""); succeeded(report)) {
    page.report = std::move(*report);
    if (succeeded(shoal::report::readProgram(module, page)))
      (void)shoal::report::writeHtml(page);
  }
  FailureOr<shoal::codegen::Program> program = shoal::codegen::emitProgram(module, "");
  if (succeeded(program))
    shoal::rt::Program(program->blob.data(), program->blob.size()); // throws: the compiler is wrong
}

bool parseText(const std::string &text, void *context) {
  return bool(parseSourceString<ModuleOp>(text, ParserConfig(static_cast<MLIRContext *>(context))));
}

class Target {
public:
  Target() {
    shoal::registerAllDialects(registry);
    shoal::registerAllPasses();
  }

  // What became of the inputs, for the record of scripts/fuzz.sh.
  ~Target() {
    const char *path = std::getenv("SHOAL_FUZZ_TALLY");
    std::FILE *file = path ? std::fopen(path, "w") : nullptr;
    if (!file)
      return;
    std::fprintf(file, "valid %u, refused %u, faults in MLIR's own parser %u\n", valid, refused, upstream);
    std::fclose(file);
  }

  void run(const std::string &text) {
    // Types and attributes live as long as their context.
    if (!context || ++inputs % 200 == 0) {
      context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
      context->loadDialect<shoal::dist::DistDialect>();
      context->getDiagEngine().registerHandler([](Diagnostic &) {});
    }
    if (shoal::checkModelText(text) || StringRef(text).starts_with("ML\xefR")) {
      ++refused;
      return;
    }
    if (!isValid(text))
      return;
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(context.get()));
    shoal::fuzz::require(bool(module), "the same text must parse twice");
    if (!hasSmallMesh(*module))
      return;
    bool small = isSmall(*module);
    auto runOnCopy = [&](StringRef passes) {
      OwningOpRef<ModuleOp> copy = module->clone();
      (void)::run(*copy, ("builtin.module(" + passes + ")").str());
    };
    for (StringRef pass : kPasses)
      if (small || pass != "interpret")
        runOnCopy(pass);
    for (const char *passes : kVariants)
      runOnCopy(passes);
    shoal::PlanOptions plan;
    compile(OwningOpRef<ModuleOp>(module->clone()).get(), plan);
    plan.mode = "infer";
    plan.dataAxes.clear();
    plan.modelAxes = {"data", "tensor", "x", "y"};
    compile(OwningOpRef<ModuleOp>(module->clone()).get(), plan);
    if (small)
      for (const char *passes : kInterpreted)
        runOnCopy(passes);
  }

private:
  bool isValid(const std::string &text) {
    shoal::fuzz::Trial trial = shoal::fuzz::tryParse(parseText, text, context.get());
    switch (trial.verdict) {
    case shoal::fuzz::Verdict::Valid:
      ++valid;
      return true;
    case shoal::fuzz::Verdict::Refused:
      ++refused;
      return false;
    case shoal::fuzz::Verdict::UpstreamFault:
      ++upstream;
      return false;
    case shoal::fuzz::Verdict::OurFault:
      break;
    }
    std::fputs(trial.report.c_str(), stderr);
    shoal::fuzz::require(false, "the parser ended by a fault that our code has part in");
    return false;
  }

  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  unsigned inputs = 0;
  unsigned valid = 0, refused = 0, upstream = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Target target;
  target.run(std::string(reinterpret_cast<const char *>(data), size)); // the parser wants a zero behind it
  return 0;
}
