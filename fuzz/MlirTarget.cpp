// MLIR text: parsed, verified, and, if it is valid, given to every pass of ours and to the pipelines
// of shoalc. A pass may refuse it with a diagnostic; what reaches the runtime must load.
#include "MlirMutator.h"

#include "core/program.h"
#include "shoal/Codegen/Emit.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Pipelines/Pipelines.h"
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

// One pass each on a copy of the module, with the options that change what it does most.
constexpr const char *kPasses[] = {
    "nn-select-results",
    "nn-select-results{mode=infer}",
    "nn-convert-dtype{to=f64}",
    "nn-explicit-counts",
    "nn-differentiate",
    "nn-optimize{optimizer=adamw weight-decay=0.1 clip-grad-norm=1}",
    "dist-number",
    "dist-data-parallel",
    "dist-propagate",
    "dist-verify-global",
    "dist-partition",
    "dist-pack",
    "dist-verify-local",
    "dist-optimize-collectives",
    "dist-expand-collectives",
    "exec-outline-kernels",
    "exec-kernel-workspace",
    "exec-lower",
    "exec-verify",
    "convert-nn-to-linalg",
    "exec-bufferize-kernels",
    "exec-kernels-to-llvm",
    "canonicalize",
};

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

// As shoalc, from whatever level the module is at.
void compile(ModuleOp module, const shoal::PlanOptions &plan) {
  auto build = [&](void (*pipeline)(OpPassManager &, const shoal::PlanOptions &)) {
    PassManager pm(module.getContext());
    pipeline(pm, plan);
    return pm.run(module);
  };
  if (!shoal::dist::isLocalProgram(module) &&
      (failed(build(shoal::buildModelPipeline)) || failed(build(shoal::buildGlobalPipeline)) ||
       failed(build(shoal::buildLocalPipeline))))
    return;
  if (failed(build(shoal::buildExecPipeline)))
    return;
  (void)shoal::codegen::emitReport(module);
  FailureOr<shoal::codegen::Program> program = shoal::codegen::emitProgram(module);
  if (succeeded(program))
    shoal::rt::Program(program->blob.data(), program->blob.size()); // throws: the compiler is wrong
}

class Target {
public:
  Target() {
    shoal::registerAllDialects(registry);
    shoal::registerAllPasses();
  }

  void run(StringRef text) {
    // Types and attributes live as long as their context.
    if (!context || ++inputs % 200 == 0) {
      context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
      context->loadDialect<shoal::dist::DistDialect>();
      context->getDiagEngine().registerHandler([](Diagnostic &) {});
    }
    if (shoal::checkModelText(text) || text.starts_with("ML\xefR"))
      return;
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(context.get()));
    if (!module || !hasSmallMesh(*module))
      return;
    for (const char *pass : kPasses) {
      OwningOpRef<ModuleOp> copy = module->clone();
      (void)::run(*copy, (Twine("builtin.module(") + pass + ")").str());
    }
    shoal::PlanOptions plan;
    compile(OwningOpRef<ModuleOp>(module->clone()).get(), plan);
    plan.mode = "infer";
    plan.dataAxes.clear();
    plan.modelAxes = {"data", "tensor", "x", "y"};
    compile(OwningOpRef<ModuleOp>(module->clone()).get(), plan);
    if (isSmall(*module))
      for (const char *pass : {"interpret{elements=0}", "interpret{all-ranks elements=0 precision=f64}"})
        (void)::run(*module, (Twine("builtin.module(") + pass + ")").str());
  }

private:
  DialectRegistry registry;
  std::unique_ptr<MLIRContext> context;
  unsigned inputs = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Target target;
  std::string text(reinterpret_cast<const char *>(data), size); // the parser wants a zero behind it
  target.run(text);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::string text(reinterpret_cast<const char *>(data), size);
  std::string changed = shoal::fuzz::mutate(text, seed);
  size = std::min(changed.size(), maxSize);
  std::memcpy(data, changed.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t maxSize,
                                            unsigned seed) {
  std::string text(reinterpret_cast<const char *>(first), firstSize);
  std::string other(reinterpret_cast<const char *>(second), secondSize);
  std::string mixed = shoal::fuzz::mix(text, other, seed);
  size_t size = std::min(mixed.size(), maxSize);
  std::memcpy(out, mixed.data(), size);
  return size;
}
