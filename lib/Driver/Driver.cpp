// The way of one model through the pipelines, as far as it is wanted, and what is made of its end.
#include "shoal/Driver/Driver.h"

#include "Mesh.h"
#include "Pipeline.h"

#include "shoal/Codegen/CUDA.h"
#include "shoal/Codegen/Emit.h"
#include "shoal/Codegen/Host.h"
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interpreter/VerifyPlan.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/Transforms/StageCosts.h"
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Report/Page.h"
#include "shoal/Report/TimelinePage.h"
#include "shoal/Schedule/Text.h"
#include "shoal/Support/Files.h"

#include "shoal-rt/timeline.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace shoal {
namespace {

/// Of a level whose contract holds, so that nothing need be verified to be printed.
std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  os << "\n";
  return text;
}

class Compilation {
public:
  Compilation(const CompilerOptions &options, MLIRContext *context)
      : options(options), context(context), plan(options.plan) {
    if (options.emit == Emit::PTX)
      plan.target = "cuda";
  }

  /// From what a user wrote to the level that --emit asks for, at most to L2.
  Outcome makeLocal(ModuleOp module);
  /// What `makeLocal` has compared with one device.
  std::vector<std::string> takeVerified() { return std::move(verified); }
  OwningOpRef<ModuleOp> unroll(ModuleOp module);
  Outcome simulate(ModuleOp module, CompilerOutput &output);
  Outcome explain(ModuleOp module, CompilerOutput &output);
  std::optional<int64_t> measureArena(ModuleOp module);
  Outcome emit(ModuleOp module, CompilerOutput &output);

private:
  /// About no place in the model.
  InFlightDiagnostic complain() const { return emitError(UnknownLoc::get(context)); }

  LogicalResult run(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build);
  LogicalResult run(ModuleOp module, const PlanOptions &plan, void (*build)(OpPassManager &, const PlanOptions &)) {
    return run(module, [&](OpPassManager &pm) { build(pm, plan); });
  }

  Outcome makeHandWritten(ModuleOp module);
  Outcome makeGlobal(ModuleOp module, PlanOptions &plan, ModuleOp training = {});
  LogicalResult checkUncut(ModuleOp module, const PlanOptions &plan);
  Outcome makeEvaluation(ModuleOp module, PlanOptions &plan, ModuleOp training);
  Outcome partitionEvaluation(ModuleOp module, const PlanOptions &plan, ModuleOp training);
  Outcome partition(ModuleOp module, const PlanOptions &plan);
  LogicalResult verifyPlan(ModuleOp global, ModuleOp local, const PlanOptions &plan);
  LogicalResult verifyRewrite(ModuleOp step, const PlanOptions &plan);
  FailureOr<std::string> writePage(ModuleOp module, report::Page &page, rt::Report promise);
  Outcome emitBinary(ModuleOp module, CompilerOutput &output);
  /// What reports and the program tell of the plan.
  std::string tellPlan() const {
    return isHandWritten ? "a local program (L2), which is its own plan" : describePlan(plan, options.given);
  }

  const CompilerOptions &options;
  MLIRContext *context;
  PlanOptions plan;
  bool isHandWritten = false; // at L2
  std::vector<std::string> verified;
  std::optional<pipe::Timeline> pipeline; // what reports tell of it
  std::vector<report::PageStage> contents; // of its stages; none of a program by hand
  std::string stages; // what costs that the program measures are of
};

} // namespace

/// Hazard: between passes only their contracts' passes verify the ops, which takes a quarter of the time of a large plan
/// where every pass does.
LogicalResult Compilation::run(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(context);
  pm.enableVerifier(options.verifyEach);
  build(pm);
  return pm.run(module);
}

/// A local program is its own plan.
Outcome Compilation::makeHandWritten(ModuleOp module) {
  isHandWritten = true;
  auto refuse = [&](const std::string &flag) {
    complain() << flag << " plans a model (L1), but '" << options.name
               << "' is a local program (L2): it has collectives";
    return Outcome::InputWrong;
  };
  for (const PlanOption *option : options.given)
    if (option->plansModel())
      return refuse(option->getFlag());
  if (options.verifyPlan)
    return refuse("--verify-plan");
  return failed(run(module, plan, buildHandWrittenPipeline)) ? Outcome::InputWrong : Outcome::Success;
}

/// Whether a plan has done more to the program than to annotate it: micro-batches, another order of tokens.
static bool isRewritten(ModuleOp before, ModuleOp after) {
  auto listOps = [](ModuleOp module) {
    SmallVector<OperationName> names;
    module.walk([&](Operation *op) {
      if (!isa<dist::ReshardOp>(op))
        names.push_back(op->getName());
    });
    return names;
  };
  return listOps(before) != listOps(after);
}

/// From the model to the annotated step: L1. Evaluation follows the plan of its `training` step.
Outcome Compilation::makeGlobal(ModuleOp module, PlanOptions &plan, ModuleOp training) {
  // The axes' use depends on the inputs that are left for this mode.
  if (failed(run(module, plan, buildModelPipeline)))
    return Outcome::InputWrong;
  if (training && failed(adoptShardings(module, training)))
    return Outcome::InputWrong;
  if (training)
    adoptStages(module, training);
  setAxes(plan, dist::lookupMesh(module).getMesh(),
          llvm::any_of(module.getOps<FunctionOpInterface>(), nn::hasBatchedInput));
  if (failed(run(module, plan, buildStepPipeline)))
    return Outcome::InputWrong;
  OwningOpRef<ModuleOp> oneDevice = options.verifyPlan ? module.clone() : nullptr;
  if (failed(run(module, plan, buildPlanPipeline)))
    return Outcome::InputWrong;
  if (oneDevice && isRewritten(*oneDevice, module) && failed(verifyRewrite(*oneDevice, plan)))
    return Outcome::WorkFailed;
  if (dist::hasPipeline(module))
    contents = report::readStages(module);
  return training || succeeded(checkUncut(module, plan)) ? Outcome::Success : Outcome::InputWrong;
}

/// A pipeline of one rank is not cut; what is said of its order and costs must be right all the same.
LogicalResult Compilation::checkUncut(ModuleOp module, const PlanOptions &plan) {
  auto axis = StringAttr::get(context, dist::kPipeAxis);
  if (dist::lookupMesh(module).getMesh().getAxisSize(axis) != std::optional<int64_t>(1))
    return success();
  OwningOpRef<ModuleOp> copy = module.clone();
  return run(*copy, plan, buildSchedulePipeline);
}

/// Where a plan rewrites the step, as to another order of tokens, the reference of `verifyPlan` means on one device what
/// the step meant. Without micro-batches, whose inputs are others.
LogicalResult Compilation::verifyRewrite(ModuleOp step, const PlanOptions &plan) {
  PlanOptions whole = plan;
  whole.microbatches = whole.pipeRanks = 1;
  OwningOpRef<ModuleOp> planned = step.clone();
  {
    // What it remarks has been told.
    ScopedDiagnosticHandler handler(context, [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() != DiagnosticSeverity::Error);
    });
    if (failed(run(*planned, whole, buildPlanPipeline)))
      return failure();
  }
  if (!isRewritten(step, *planned))
    return success();
  interp::VerifyPlanOptions verify;
  verify.progress = options.verifyProgress;
  verify.onOneDevice = true;
  return interp::checkPlan(step, *planned, verify);
}

/// Of work that takes long it tells before how long.
LogicalResult Compilation::verifyPlan(ModuleOp global, ModuleOp local, const PlanOptions &plan) {
  constexpr double kLong = 10, kMinutes = 120; // seconds
  // What ranks run, and not the functions of stages that it is made of.
  OwningOpRef<ModuleOp> line = dist::hasPipeline(local) ? unroll(local) : nullptr;
  if (dist::hasPipeline(local) && !line)
    return failure();
  local = line ? *line : local;
  interp::VerifyPlanOptions verify;
  verify.progress = options.verifyProgress;
  double seconds = interp::estimateWork(global, local, verify) / interp::kOperationsPerSecond;
  if (seconds > kLong)
    emitRemark(UnknownLoc::get(context))
        << "--verify-plan computes " << int64_t(verify.steps) << " steps of all ranks and of one device (--mode "
        << plan.mode << ") op by op, about " << int64_t(seconds < kMinutes ? seconds : seconds / 60)
        << (seconds < kMinutes ? " seconds" : " minutes")
        << "; a model of fewer layers and rows has the same plan in less";
  interp::PlanReport report;
  if (failed(interp::checkPlan(global, local, verify, &report)))
    return failure();
  verified.push_back("--mode " + plan.mode + ": " + report.countsText(verify));
  return success();
}

/// From L1 to L2, checked against L1 where that is asked for.
Outcome Compilation::partition(ModuleOp module, const PlanOptions &plan) {
  OwningOpRef<ModuleOp> global = options.verifyPlan ? module.clone() : nullptr;
  if (failed(run(module, plan, buildLocalPipeline)))
    return Outcome::InputWrong;
  return global && failed(verifyPlan(*global, module, plan)) ? Outcome::WorkFailed : Outcome::Success;
}

/// The model as the user wrote it to its evaluation step at L1, where its `training` step is.
Outcome Compilation::makeEvaluation(ModuleOp module, PlanOptions &plan, ModuleOp training) {
  plan.mode = "eval";
  return makeGlobal(module, plan, training);
}

/// The evaluation step from L1 to L2, where its `training` step is: that knows what lies in which bucket, and on which
/// ranks of a pipeline.
Outcome Compilation::partitionEvaluation(ModuleOp module, const PlanOptions &plan, ModuleOp training) {
  adoptBuckets(module, training);
  Outcome outcome = partition(module, plan);
  if (outcome == Outcome::Success)
    adoptRanks(module, training);
  return outcome;
}

Outcome Compilation::makeLocal(ModuleOp module) {
  if (dist::isLocalProgram(module))
    return makeHandWritten(module);
  if (failed(checkAxes(module, options)))
    return Outcome::InputWrong;
  // A training program brings the evaluation of its model along, and evaluation follows its training.
  bool isEvaluation = plan.mode == "eval", isTraining = plan.mode == "train";
  bool isBoth = isTraining && options.emit != Emit::Global && options.emit != Emit::Local;
  OwningOpRef<ModuleOp> other = isEvaluation || isBoth ? module.clone() : nullptr;
  if (isEvaluation) {
    PlanOptions training = plan;
    training.mode = "train";
    if (Outcome outcome = makeGlobal(*other, training); outcome != Outcome::Success)
      return outcome;
    PlanOptions evaluation = training;
    if (Outcome outcome = makeEvaluation(module, evaluation, *other);
        outcome != Outcome::Success || options.emit == Emit::Global)
      return outcome;
    if (failed(run(*other, training, buildLocalPipeline)))
      return Outcome::InputWrong;
    return partitionEvaluation(module, evaluation, *other);
  }
  if (Outcome outcome = makeGlobal(module, plan); outcome != Outcome::Success)
    return outcome;
  if (options.emit == Emit::Global)
    return Outcome::Success;
  PlanOptions evaluation = plan;
  if (other)
    if (Outcome outcome = makeEvaluation(*other, evaluation, module); outcome != Outcome::Success)
      return outcome;
  if (Outcome outcome = partition(module, plan); outcome != Outcome::Success)
    return outcome;
  tellFewMicrobatches(module, plan);
  if (!other)
    return Outcome::Success;
  if (Outcome outcome = partitionEvaluation(*other, evaluation, module); outcome != Outcome::Success)
    return outcome;
  // Its stages are functions of their own, and their schedule is another.
  if (failed(run(*other, [](OpPassManager &pm) { pm.addPass(pipe::createUnrollPass()); })))
    return Outcome::InputWrong;
  addEvaluation(module, *other);
  return Outcome::Success;
}

/// The step as reports tell it: stages in the order of their schedule, loops of a program by hand unrolled. Null after an
/// error.
OwningOpRef<ModuleOp> Compilation::unroll(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  LogicalResult isUnrolled = run(*copy, [&](OpPassManager &pm) {
    pm.addPass(pipe::createUnrollPass());
    pm.addPass(dist::createFoldControlFlowPass());
    if (dist::hasPipeline(module))
      pm.addPass(dist::createNarrowPositionsPass());
  });
  return succeeded(isUnrolled) ? std::move(copy) : nullptr;
}

/// What the reports tell of a pipeline, from the functions of its stages.
Outcome Compilation::simulate(ModuleOp module, CompilerOutput &output) {
  bool isAsked = options.timeline != ReportFormat::None;
  if (!isAsked && options.report == ReportFormat::None && !options.explain)
    return Outcome::Success;
  FailureOr<std::optional<pipe::Timeline>> simulated = simulatePipeline(module, plan.pipelineCosts);
  if (failed(simulated))
    return Outcome::InputWrong;
  pipeline = std::move(*simulated);
  if (pipeline)
    pipeline->facts = {"mesh " + spellMesh(dist::lookupMesh(module).getMesh()), tellPlan()};
  for (report::PageStage &it : contents)
    it.rank = pipeline ? pipeline->shape.getRank(it.stage) : 0;
  if (!isAsked)
    return Outcome::Success;
  if (!pipeline) {
    complain() << "--timeline shows the stages of a pipeline, and this program has none; give --mesh an axis pipe of at "
                  "least 2 ranks";
    return Outcome::InputWrong;
  }
  constexpr double kMicroseconds = 1000; // of a millisecond
  output.timeline = options.timeline == ReportFormat::Html ? report::writeTimelinePage(*pipeline)
                                                           : report::writeChromeTrace(*pipeline, kMicroseconds);
  return Outcome::Success;
}

/// Exchanges between stages that are part of no message of the schedule, and the bytes of the rank that sends most for
/// them.
static std::pair<uint64_t, uint64_t> countSums(ArrayRef<dist::Explanation> all, dist::MeshAttr mesh) {
  auto isSum = [axis = dist::getPipeAxis(mesh)](const dist::Explanation &it) {
    auto scope = it.op->getAttrOfType<StringAttr>(exec::ExecDialect::kScopeAttr);
    bool isMessage = scope && rt::parseActionLabel(scope.getValue()).kind == 'S';
    return !isMessage && llvm::is_contained(it.axes.getAxes(), axis);
  };
  uint64_t count = 0;
  for (const dist::Explanation &it : all)
    count += isSum(it) ? it.count : 0;
  return {count, *llvm::max_element(dist::countSent(all, mesh, isSum))};
}

/// The collectives of the step, as --report counts them: evaluation left out where it stands beside training.
Outcome Compilation::explain(ModuleOp module, CompilerOutput &output) {
  OwningOpRef<ModuleOp> copy = unroll(module);
  if (!copy)
    return Outcome::InputWrong;
  llvm::raw_string_ostream os(output.explanation);
  FailureOr<SmallVector<func::FuncOp>> steps = exec::findSteps(*copy);
  if (failed(steps))
    return Outcome::InputWrong;
  for (func::FuncOp step : *steps) {
    if (plan.mode != "eval" && exec::isEvaluation(step))
      continue;
    dist::Explanations all = dist::explainOnce(step, plan.overlap);
    dist::printExplanations(step, all, os);
    if (pipeline)
      os << tellPipeline(*pipeline, countSums(all.named, dist::lookupMesh(step).getMesh())) << tellStages(contents);
  }
  return Outcome::Success;
}

/// The page of a lowered program, with what was read of it before.
FailureOr<std::string> Compilation::writePage(ModuleOp module, report::Page &page, rt::Report promise) {
  page.source = options.name;
  page.flags = spellFlags(options.plan, options.given);
  page.report = std::move(promise);
  if (pipeline)
    page.pipeline = report::toTimeline(*pipeline);
  page.stages = contents;
  if (failed(report::readProgram(module, page)))
    return failure();
  return report::writeHtml(page);
}

/// From L2 to the kernels' code and the table.
Outcome Compilation::emit(ModuleOp module, CompilerOutput &output) {
  if (options.emit == Emit::Global || options.emit == Emit::Local) {
    output.text = print(module);
    return Outcome::Success;
  }
  // Of the page one part is read before the program is lowered, and one after.
  report::Page page;
  rt::ReportJson rings;
  bool hasRings = false;
  module.walk([&](Operation *op) { hasRings |= op->hasAttr(dist::DistDialect::kRingAttr); });
  if (options.report == ReportFormat::Html || (options.report == ReportFormat::Json && hasRings)) {
    OwningOpRef<ModuleOp> copy = unroll(module);
    if (!copy)
      return Outcome::InputWrong;
    if (options.report == ReportFormat::Html && failed(report::readLocal(*copy, plan.overlap, page)))
      return Outcome::InputWrong;
    if (options.report == ReportFormat::Json) {
      FailureOr<rt::ReportJson> told = report::readRings(*copy, plan.overlap);
      if (failed(told))
        return Outcome::InputWrong;
      rings = std::move(*told);
    }
  }
  for (auto schedule : module.getOps<pipe::ScheduleOp>())
    stages = pipe::describeStages(module, schedule.getSchedule().shape);
  if (failed(run(module, plan, buildExecPipeline)))
    return Outcome::InputWrong;
  if (options.report != ReportFormat::None) {
    FailureOr<rt::Report> promise = codegen::emitReport(module, tellPlan());
    if (failed(promise))
      return Outcome::WorkFailed;
    promise->rings = std::move(rings);
    if (pipeline)
      promise->pipeline = rt::toReport(report::toTimeline(*pipeline));
    if (pipeline && !contents.empty())
      promise->pipeline["stages"] = toReport(contents);
    FailureOr<std::string> text = options.report == ReportFormat::Json
                                      ? FailureOr<std::string>(rt::toText(*promise))
                                      : writePage(module, page, std::move(*promise));
    if (failed(text))
      return Outcome::WorkFailed;
    output.report = std::move(*text);
  }
  if (options.emit == Emit::Exec) {
    output.text = print(module);
    return Outcome::Success;
  }
  return emitBinary(module, output);
}

/// Bytes that every rank would allocate. Nothing after a fault.
std::optional<int64_t> Compilation::measureArena(ModuleOp module) {
  if (makeLocal(module) != Outcome::Success || failed(run(module, plan, buildExecPipeline)))
    return std::nullopt;
  int64_t most = 0;
  for (auto program : module.getOps<exec::ProgramOp>())
    most = std::max<int64_t>(most, program.getArena());
  return most;
}

Outcome Compilation::emitBinary(ModuleOp module, CompilerOutput &output) {
  auto take = [&](FailureOr<std::string> text, Outcome otherwise) {
    if (failed(text))
      return otherwise;
    output.text = std::move(*text);
    return Outcome::Success;
  };
  if (options.emit == Emit::PTX)
    return take(codegen::emitKernelsPTX(module, options.gpuArch), Outcome::InputWrong);
  if (failed(codegen::checkOneMemory(module)))
    return Outcome::InputWrong;
  // What can fail of kernels is the processor that --cpu names.
  codegen::HostTarget target{options.cpu, ""};
  Outcome unknownCpu = options.cpu.empty() ? Outcome::WorkFailed : Outcome::InputWrong;
  if (options.emit == Emit::LLVM)
    return take(codegen::emitKernelsLLVM(module, target), unknownCpu);
  FailureOr<codegen::KernelObjects> code = codegen::compileKernels(module, target);
  if (failed(code))
    return unknownCpu;
  FailureOr<codegen::Program> program = codegen::emitProgram(module, tellPlan(), stages);
  if (failed(program))
    return Outcome::WorkFailed;
  return take(codegen::linkPayload(*code, program->kernels, program->blob, [this] { return complain(); },
                                   program->evaluation),
              Outcome::WorkFailed);
}

/// Of the cuts into stages, from the fastest to lighter ones, the first that has an arena within the limit, or else the
/// one whose arena is the smallest; another than the fastest is told. Faults are left to the compilation under that
/// cut: one that is only tried may have other stages than those whose costs were measured.
static int64_t findCut(ModuleOp module, const CompilerOptions &options) {
  constexpr int64_t kMostCuts = 16;
  bool isCutByHand = false;
  module.walk([&](Operation *op) { isCutByHand |= op->hasAttr(pipe::PipeDialect::kStageAttr); });
  if (!dist::hasPipeline(module) || dist::isLocalProgram(module) || isCutByHand)
    return 0;
  auto quiet = std::make_optional<ScopedDiagnosticHandler>(module.getContext(), [](Diagnostic &) { return success(); });
  CompilerOptions trial = options;
  trial.emit = Emit::Exec;
  trial.verifyPlan = false;
  trial.plan.memoryLimitGb = 0;
  int64_t best = 0, least = INT64_MAX, fastest = 0;
  auto measure = [&]() {
    OwningOpRef<ModuleOp> copy = module.clone();
    return Compilation(trial, module.getContext()).measureArena(*copy);
  };
  for (int64_t &cut = trial.plan.lighterCut; cut < kMostCuts; ++cut) {
    std::optional<int64_t> arena = measure();
    if (!arena && !trial.plan.pipelineCosts.empty()) {
      trial.plan.pipelineCosts.clear();
      arena = measure();
      trial.plan.pipelineCosts = options.plan.pipelineCosts;
    }
    if (!arena)
      break;
    if (cut == 0)
      fastest = *arena;
    if (*arena < least) {
      least = *arena;
      best = cut;
    }
    if (double(*arena) <= options.plan.memoryLimitGb * double(int64_t(1) << 30))
      break;
  }
  quiet.reset();
  if (best > 0)
    emitRemark(UnknownLoc::get(module.getContext()))
        << "--memory-limit-gb: the fastest cut into stages needs " << fastest
        << " bytes of a rank; another is taken, which needs " << least << " and may be slower";
  return best;
}

/// Reads the file of --schedule-file, once, since it may be a pipe of a shell. Its micro-batches are the plan's where
/// nobody says others. What is wrong in it is told with its line by the passes.
static LogicalResult readScheduleFile(MLIRContext *context, CompilerOptions &options) {
  PlanOptions &plan = options.plan;
  if (plan.scheduleFile.empty())
    return success();
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> text = openInput(plan.scheduleFile, pipe::kMostScheduleBytes, error);
  if (!text)
    return emitError(UnknownLoc::get(context)) << error;
  plan.scheduleText = text->getBuffer().str();
  std::optional<pipe::Schedule> schedule = pipe::readSchedule(plan.scheduleText, plan.scheduleFile, error);
  bool isSaid = llvm::any_of(options.given, [](const PlanOption *option) { return option->name == "microbatches"; });
  if (!schedule)
    return success();
  int64_t count = schedule->shape.microbatches;
  if (isSaid && plan.microbatches != count)
    return emitError(UnknownLoc::get(context)) << "--microbatches must be that of --schedule-file (" << count
                                               << "), got: " << plan.microbatches << "; it may be left out";
  if (plan.mode == "infer" && count > 1)
    return emitError(UnknownLoc::get(context))
           << "--mode infer takes its batch whole, as one micro-batch; that of --schedule-file has " << count;
  plan.microbatches = count;
  return success();
}

Outcome compile(ModuleOp module, const CompilerOptions &options, CompilerOutput &output) {
  // Annotations of the file may name the mesh that --mesh brings, so it is verified with it.
  if (failed(setMesh(module, options)) || failed(verify(module)))
    return Outcome::InputWrong;
  if (options.emit == Emit::PTX && !codegen::isKnownGPU(options.gpuArch)) {
    emitError(UnknownLoc::get(module.getContext()))
        << "--gpu-arch must name a GPU architecture that LLVM knows, as sm_80, got: '" << options.gpuArch << "'";
    return Outcome::InputWrong;
  }
  CompilerOptions chosen = options;
  if (failed(readScheduleFile(module.getContext(), chosen)))
    return Outcome::InputWrong;
  if (options.plan.memoryLimitGb > 0)
    chosen.plan.lighterCut = findCut(module, chosen);
  Compilation compilation(chosen, module.getContext());
  if (Outcome outcome = compilation.makeLocal(module); outcome != Outcome::Success)
    return outcome;
  output.verified = compilation.takeVerified();
  if (Outcome outcome = compilation.simulate(module, output); outcome != Outcome::Success)
    return outcome;
  if (options.explain)
    if (Outcome outcome = compilation.explain(module, output); outcome != Outcome::Success)
      return outcome;
  return compilation.emit(module, output);
}

} // namespace shoal
