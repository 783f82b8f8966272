// shoalc: one training program, written for one device, to an executable for many.
//
// Reads L1 IR, sets the mesh, runs the pipelines of lib/Pipelines as far as --emit asks, and
// writes text, an object, or an executable that needs no compiler. Exit codes: 0; 1 when the work
// failed (a plan that differs, a disk that is full); 2 when the command line, a path in it or the
// model is wrong.
#include "Options.h"

#include "shoal/Codegen/CUDA.h"
#include "shoal/Codegen/Emit.h"
#include "shoal/Codegen/Host.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interpreter/VerifyPlan.h"
#include "shoal/Support/Files.h"

#include "shoal-rt/exit_codes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

using namespace mlir;
using namespace shoal;

namespace {

constexpr int kWorkFailed = rt::kExitWorkFailed, kInputWrong = rt::kExitBadInput;

/// Prints `message` as the one line that every error is.
int fail(int code, const llvm::Twine &message) {
  llvm::errs() << "shoalc: error: " << message << "\n";
  return code;
}

/// Diagnostics as one line each: where, what; notes follow as lines of their own.
void printDiagnostic(Diagnostic &diagnostic) {
  auto print = [](Diagnostic &d) {
    Location loc = d.getLocation();
    while (!isa<FileLineColLoc>(loc)) {
      if (auto named = dyn_cast<NameLoc>(loc); named && !isa<UnknownLoc>(named.getChildLoc()))
        loc = named.getChildLoc();
      else if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty())
        loc = fused.getLocations().front();
      else if (auto call = dyn_cast<CallSiteLoc>(loc))
        loc = call.getCallee();
      else
        break;
    }
    auto option = dyn_cast<NameLoc>(loc); // what a flag brought has no place in the file
    if (auto file = dyn_cast<FileLineColLoc>(loc))
      llvm::errs() << file.getFilename().getValue() << ":" << file.getLine() << ":"
                   << file.getColumn() << ": ";
    else
      llvm::errs() << "shoalc: ";
    switch (d.getSeverity()) {
    case DiagnosticSeverity::Error:
      llvm::errs() << "error: ";
      break;
    case DiagnosticSeverity::Warning:
      llvm::errs() << "warning: ";
      break;
    case DiagnosticSeverity::Note:
      llvm::errs() << "note: ";
      break;
    case DiagnosticSeverity::Remark:
      llvm::errs() << "remark: ";
      break;
    }
    if (option)
      llvm::errs() << option.getName().getValue() << ": ";
    std::string text = d.str();
    std::replace(text.begin(), text.end(), '\n', ' ');
    llvm::errs() << text << "\n";
  };
  print(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
}

/// Makes the module's mesh the one of the command line, or a mesh of one device when there is none.
LogicalResult setMesh(ModuleOp module, const CompilerOptions &options) {
  dist::MeshOp existing = dist::lookupMesh(module);
  if (existing && failed(verify(existing)))
    return failure();
  if (existing && options.mesh.empty())
    return success();
  MLIRContext *context = module.getContext();
  std::vector<std::pair<std::string, int64_t>> axes = options.mesh;
  if (axes.empty())
    axes.emplace_back("data", 1);
  SmallVector<dist::MeshAxisAttr> attrs;
  for (const auto &[name, size] : axes)
    attrs.push_back(dist::MeshAxisAttr::get(context, StringAttr::get(context, name), size));
  auto mesh = dist::MeshAttr::get(context, attrs, {});
  Location origin = options.mesh.empty() ? module.getLoc() : NameLoc::get(StringAttr::get(context, "--mesh"));
  if (existing && existing.getMesh().getAxes() == mesh.getAxes())
    return success(); // with the file's device ids
  if (existing) {
    if (!existing.getMesh().getDeviceIds().empty())
      return existing.emitError("the file's mesh places its devices by device_ids, which --mesh of other axes or "
                                "sizes cannot keep: change the file, got: ")
             << mesh;
    // Annotations name the file's axes; --mesh may change their sizes, not take one away.
    for (dist::MeshAxisAttr axis : existing.getMesh().getAxes())
      if (!mesh.getAxisSize(axis.getName()))
        return existing.emitError("--mesh lacks axis '")
               << axis.getName().getValue() << "' of the file's own mesh";
    existing.setMeshAttr(mesh);
    existing->setLoc(origin);
    return success();
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  builder.create<dist::MeshOp>(origin, "mesh", mesh);
  return success();
}

LogicalResult run(ModuleOp module, const PlanOptions &plan,
                  void (*build)(OpPassManager &, const PlanOptions &)) {
  PassManager pm(module.getContext());
  build(pm, plan);
  return pm.run(module);
}

/// Writes text or bytes to a file, or to stdout for "-".
int write(llvm::StringRef path, llvm::StringRef contents) {
  std::error_code error;
  if (path == "-") {
    llvm::outs() << contents;
    llvm::outs().flush();
    error = llvm::outs().error();
    llvm::outs().clear_error();
  } else {
    error = replaceFile(path, contents);
  }
  return error ? fail(kWorkFailed, "cannot write '" + path + "': " + error.message()) : 0;
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << "\n";
  return text;
}

/// Every tensor has elements, and few enough that sums of their bytes fit 64 bits.
LogicalResult checkSizes(ModuleOp module) {
  static constexpr int64_t kMost = int64_t(1) << 40;
  auto check = [](Location loc, Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return success();
    int64_t elements = 1;
    for (int64_t size : tensor.getShape())
      if (size == 0 || size > kMost / elements)
        return emitError(loc) << "a tensor must hold from 1 to " << kMost << " elements, got: " << tensor;
      else
        elements *= size;
    return success();
  };
  bool isRight = true;
  module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          isRight = isRight && succeeded(check(argument.getLoc(), argument.getType()));
    for (Type type : op->getResultTypes())
      isRight = isRight && succeeded(check(op->getLoc(), type));
  });
  return success(isRight);
}

/// A mesh axis that shards nothing would make its devices repeat each other's work.
LogicalResult checkAxesUsed(ModuleOp module) {
  llvm::StringSet<> used;
  auto collect = [&](Attribute attr) {
    attr.walk([&](dist::ShardingAttr sharding) {
      for (dist::DimShardingAttr dim : sharding.getDims())
        for (StringAttr axis : dim.getAxes())
          used.insert(axis.getValue());
    });
  };
  module.walk([&](Operation *op) { collect(op->getAttrDictionary()); });
  dist::MeshOp mesh = dist::lookupMesh(module);
  for (dist::MeshAxisAttr axis : mesh.getMesh().getAxes())
    if (axis.getSize() > 1 && !used.contains(axis.getName().getValue()))
      return mesh.emitError("mesh axis '")
             << axis.getName().getValue() << "' of size " << axis.getSize()
             << " shards nothing; annotate a value with it or take it out of the mesh";
  return success();
}

/// Whether some input has a sample dimension, which data parallelism splits.
bool hasBatchedInput(ModuleOp module) {
  bool found = false;
  module.walk([&](func::FuncOp func) {
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      found |= nn::isBatchedInput(func, i);
  });
  return found;
}

/// From the model to the annotated step: L1. Evaluation follows the plan of its `training` step.
int makeGlobal(ModuleOp module, PlanOptions &plan, ModuleOp training = {}) {
  // The axes' use depends on the inputs that are left for this mode.
  if (failed(run(module, plan, buildModelPipeline)))
    return kInputWrong;
  if (training)
    adoptShardings(module, training);
  std::vector<std::string> axes;
  for (dist::MeshAxisAttr axis : dist::lookupMesh(module).getMesh().getAxes())
    axes.push_back(axis.getName().getValue().str());
  setAxes(plan, axes, hasBatchedInput(module));
  if (failed(run(module, plan, buildGlobalPipeline)))
    return kInputWrong;
  // An axis may be of use to training alone.
  return training || succeeded(checkAxesUsed(module)) ? 0 : kInputWrong;
}

/// From L1 to L2, checked against L1 where that is asked for.
int partition(ModuleOp module, const CompilerOptions &options, const PlanOptions &plan) {
  OwningOpRef<ModuleOp> global = options.verifyPlan ? module.clone() : nullptr;
  if (failed(run(module, plan, buildLocalPipeline)))
    return kInputWrong;
  return global && failed(interp::checkPlan(*global, module, {})) ? kWorkFailed : 0;
}

/// The model as the user wrote it to its evaluation step, as far as --emit asks.
int makeEvaluation(ModuleOp module, const CompilerOptions &options, const PlanOptions &trainingPlan,
                   ModuleOp training, PlanOptions &plan) {
  plan = trainingPlan;
  plan.mode = "eval";
  if (int code = makeGlobal(module, plan, training))
    return code;
  return options.emit == Emit::Global ? 0 : partition(module, options, plan);
}

/// From the model, or from a local program written by hand, to the local program: L2.
int makeLocal(ModuleOp module, const CompilerOptions &options, PlanOptions &plan) {
  if (dist::isLocalProgram(module)) {
    if (!options.planFlags.empty())
      return fail(kInputWrong, options.planFlags.front() + " plans a model (L1), but '" + options.input +
                                   "' is a local program (L2): it has collectives");
    return failed(run(module, plan, buildHandWrittenPipeline)) ? kInputWrong : 0;
  }
  bool isEvaluation = plan.mode == "eval", isTraining = plan.mode == "train";
  // A training program brings the evaluation of its model along.
  OwningOpRef<ModuleOp> other;
  if (isEvaluation || (isTraining && options.emit != Emit::Global && options.emit != Emit::Local))
    other = module.clone();
  if (isEvaluation) {
    PlanOptions training = plan;
    training.mode = "train";
    if (int code = makeGlobal(*other, training))
      return code;
    if (int code = makeEvaluation(module, options, training, *other, plan))
      return code;
  } else {
    if (int code = makeGlobal(module, plan))
      return code;
    if (options.emit == Emit::Global)
      return 0;
    PlanOptions evaluation;
    if (other)
      if (int code = makeEvaluation(*other, options, plan, module, evaluation))
        return code;
    if (int code = partition(module, options, plan))
      return code;
    if (other)
      addEvaluation(module, *other);
  }
  if (options.verifyPlan)
    llvm::errs() << "shoalc: the plan equals one device\n";
  return 0;
}

int compile(ModuleOp module, const CompilerOptions &options, const std::string &runtime) {
  // Annotations of the file may name the mesh that --mesh brings, so it is verified with it.
  if (failed(setMesh(module, options)) || failed(verify(module)) || failed(checkSizes(module)))
    return kInputWrong;
  if (options.emit == Emit::PTX && !codegen::isKnownGPU(options.gpuArch))
    return fail(kInputWrong, "--gpu-arch must name a GPU architecture that LLVM knows, as sm_80, got: '" +
                                 options.gpuArch + "'");
  PlanOptions plan = options.plan;
  if (int code = makeLocal(module, options, plan))
    return code;
  if (options.emit == Emit::Global || options.emit == Emit::Local)
    return write(options.output, print(module));

  if (failed(run(module, plan, buildExecPipeline)))
    return kInputWrong;
  if (!options.report.empty()) {
    FailureOr<std::string> report = codegen::emitReport(module);
    if (failed(report))
      return kWorkFailed;
    if (int code = write(options.report, *report))
      return code;
  }
  if (options.emit == Emit::Exec)
    return write(options.output, print(module));

  if (options.emit == Emit::PTX) {
    FailureOr<std::string> text = codegen::emitKernelsPTX(module, options.gpuArch);
    return failed(text) ? kInputWrong : write(options.output, *text);
  }
  codegen::HostTarget target{options.cpu, ""};
  if (options.emit == Emit::LLVM) {
    FailureOr<std::string> text = codegen::emitKernelsLLVM(module, target);
    if (failed(text))
      return options.cpu.empty() ? kWorkFailed : kInputWrong;
    return write(options.output, *text);
  }
  FailureOr<codegen::KernelObjects> code = codegen::compileKernels(module, target);
  FailureOr<codegen::Program> program = codegen::emitProgram(module);
  if (failed(code)) // what can fail here is the processor that --cpu names
    return options.cpu.empty() ? kWorkFailed : kInputWrong;
  if (failed(program))
    return kWorkFailed;
  // What fails here is about no place in the model.
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(module.getContext())); };
  FailureOr<std::string> payload =
      codegen::linkPayload(*code, program->kernels, program->blob, emitError, program->evaluation);
  if (failed(payload))
    return kWorkFailed;
  if (options.emit == Emit::Object)
    return write(options.output, *payload);
  return failed(codegen::writeExecutable(runtime, *payload, options.output, emitError))
             ? kWorkFailed
             : 0;
}

} // namespace

int main(int argc, char **argv) {
  // A file that hits its size limit is an error of that write, with a line that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  CompilerOptions options;
  if (std::optional<int> code = parseCommandLine(argc, argv, options))
    return *code;

  for (const std::string &output : {options.output, options.report})
    if (output != "-" && llvm::sys::fs::equivalent(output, options.input))
      return fail(kInputWrong, "'" + output + "' is the model itself; name another file to write");
  for (const std::string &output : {options.output, options.report})
    if (!output.empty() && output != "-")
      if (std::error_code error = checkWritable(output))
        return fail(kInputWrong, "cannot write '" + output + "': " + error.message());

  std::string runtime = options.runtime;
  if (runtime.empty()) {
    std::string self = llvm::sys::fs::getMainExecutable(argv[0], (void *)(intptr_t)&fail);
    runtime = (llvm::sys::path::parent_path(self) + "/shoal-rt-main").str();
  }
  if (options.emit == Emit::Executable && !llvm::sys::fs::is_regular_file(runtime))
    return fail(kInputWrong, "no runtime executable at '" + runtime + "' (see --runtime)");

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadDialect<dist::DistDialect>(); // a model may come without a mesh
  context.printOpOnDiagnostic(false); // one line, not the op
  context.getDiagEngine().registerHandler(printDiagnostic);

  std::string message;
  auto buffer = openModel(options.input, message);
  if (!buffer) {
    llvm::errs() << (llvm::StringRef(message).starts_with("error: ") ? "shoalc: " : "") << message << "\n";
    return kInputWrong;
  }
  if (buffer->getBuffer().starts_with("ML\xefR"))
    return fail(kInputWrong, "'" + options.input + "' must be MLIR text, got: bytecode");
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, config);
  if (!module)
    return kInputWrong;
  return compile(*module, options, runtime);
}
