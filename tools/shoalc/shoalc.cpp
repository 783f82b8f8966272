// shoalc: one training program, written for one device, to an executable for many.
//
// The command line (Options.cpp) around the compiler (lib/Driver): reads the model, writes text, an object, or
// an executable that needs no compiler. Exit codes: 0; 1 when the work failed (a plan that differs, a disk
// that is full); 2 when the command line, a path in it or the model is wrong.
#include "Options.h"

#include "shoal/Codegen/Host.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Support/Files.h"

#include "shoal-rt/standard_streams.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <optional>

using namespace mlir;
using namespace shoal;

namespace {

/// Prints `message` as the one line that every error is.
int fail(int code, const llvm::Twine &message) {
  llvm::errs() << "shoalc: error: " << message << "\n";
  return code;
}

/// What can be known of the paths before the work.
int checkPaths(const CommandLine &line) {
  const PlanOptions &plan = line.compiler.plan;
  bool isExecutable = line.compiler.emit == Emit::Executable;
  llvm::StringRef runtime = isExecutable ? llvm::StringRef(line.runtime) : llvm::StringRef();
  for (const std::string &output : {line.output, line.report, line.timeline}) {
    if (output.empty() || output == "-")
      continue;
    for (auto [what, input] : {std::pair<const char *, llvm::StringRef>("the model", line.input),
                               {"--schedule-file", plan.scheduleFile}, {"--pipeline-costs", plan.pipelineCosts},
                               {"the runtime", runtime}})
      if (!input.empty() && isSameFile(output, input))
        return fail(rt::kExitBadInput, "'" + output + "' is " + what + " itself; name another file to write");
    if (std::error_code error = checkWritable(output))
      return fail(rt::kExitBadInput, "cannot write '" + output + "': " + error.message());
  }
  if (isExecutable && !llvm::sys::fs::is_regular_file(line.runtime))
    return fail(rt::kExitBadInput, "no runtime executable at '" + line.runtime + "' (see --runtime)");
  return 0;
}

int write(llvm::StringRef path, llvm::StringRef contents) {
  std::error_code error = writeOutput(path, contents);
  return error ? fail(rt::kExitWorkFailed, "cannot write '" + path + "': " + error.message()) : 0;
}

int writeOutputs(const CommandLine &line, const CompilerOutput &output, MLIRContext &context) {
  if (!line.report.empty())
    if (int code = write(line.report, output.report))
      return code;
  if (!line.timeline.empty())
    if (int code = write(line.timeline, output.timeline))
      return code;
  if (line.compiler.explain)
    if (int code = write("-", output.explanation))
      return code;
  if (line.output.empty()) // a question
    return 0;
  if (line.compiler.emit != Emit::Executable)
    return write(line.output, output.text);
  auto emitError = [&] { return mlir::emitError(UnknownLoc::get(&context)); };
  return failed(codegen::writeExecutable(line.runtime, output.text, line.output, emitError)) ? rt::kExitWorkFailed : 0;
}

/// On a terminal a line that tells how much is done, and leaves no trace.
class Meter {
public:
  ~Meter() {
    if (shown >= 0)
      llvm::errs() << "\r\x1b[K";
  }
  void show(double part) {
    int percent = int(part * 100);
    if (percent == shown)
      return;
    shown = percent;
    llvm::errs() << "\r\x1b[Kshoalc: --verify-plan: " << percent << "%";
  }

private:
  int shown = -1;
};

} // namespace

int main(int argc, char **argv) {
  rt::openStandardStreams();
  // A file that hits its size limit is an error of that write, with a line that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  CommandLine line;
  if (std::optional<int> code = parseCommandLine(argc, argv, line))
    return *code;
  if (line.runtime.empty()) {
    std::string self = llvm::sys::fs::getMainExecutable(argv[0], (void *)(intptr_t)&fail);
    line.runtime = (llvm::sys::path::parent_path(self) + "/shoal-rt-main").str();
  }
  if (int code = checkPaths(line))
    return code;

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadDialect<dist::DistDialect>(); // a model may come without a mesh
  context.printOpOnDiagnostic(false);       // one line, not the op
  llvm::StringSet<> toldRemarks;
  std::optional<Meter> meter; // what is told goes in its place
  context.getDiagEngine().registerHandler(
      [&](Diagnostic &diagnostic) {
        meter.reset();
        printDiagnostic("shoalc", diagnostic, toldRemarks);
      });

  OwningOpRef<ModuleOp> module = readModel(line.input, context);
  if (!module)
    return rt::kExitBadInput;
  CompilerOutput output;
  if (line.compiler.verifyPlan && llvm::sys::Process::StandardErrIsDisplayed())
    line.compiler.verifyProgress = [&](double part) { (meter ? *meter : meter.emplace()).show(part); };
  Outcome outcome = compile(*module, line.compiler, output);
  meter.reset();
  if (outcome != Outcome::Success)
    return int(outcome);
  for (const std::string &verified : output.verified)
    llvm::errs() << "shoalc: the plan equals one device, " << verified << "\n";
  return writeOutputs(line, output, context);
}
