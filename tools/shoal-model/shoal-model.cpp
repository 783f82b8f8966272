// shoal-model: a model as L1 IR from its config.json. Exit codes: 0; 1 when the model cannot be written; 2
// when the command line or the config is wrong.
#include "Options.h"

#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Support/Files.h"

#include "shoal-rt/exit_codes.h"
#include "shoal-rt/standard_streams.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

using namespace mlir;
using namespace shoal;

namespace {

int fail(int code, const llvm::Twine &message) {
  llvm::errs() << "shoal-model: error: " << message << "\n";
  return code;
}

/// Null with one line in `error`.
OwningOpRef<ModuleOp> build(MLIRContext &context, const ModelCommandLine &line, llvm::StringRef text,
                            std::string &error) {
  if (line.family == Family::Gpt2) {
    auto config = models::parseGpt2Config(text, line.dropout, error);
    return config ? models::buildGpt2(context, *config, line.batch, error) : nullptr;
  }
  auto config = models::parseLlamaConfig(text, line.dropout, error);
  return config ? models::buildLlama(context, *config, line.batch, error) : nullptr;
}

/// The module as text with an argument a line, which is where messages point and hands put annotations.
std::string printModel(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  size_t begin = text.find("func.func @"), end = std::min(text.find(") -> (", begin), text.size());
  for (size_t at = begin; (at = text.find(", %arg", at)) < end; end += 6)
    text.replace(at, 2, ",\n      ");
  return text;
}

} // namespace

int main(int argc, char **argv) {
  rt::openStandardStreams();
  // A file that hits its size limit is an error of that write, with a line that names the file.
  std::signal(SIGXFSZ, SIG_IGN);
  ModelCommandLine line;
  if (std::optional<int> code = parseCommandLine(argc, argv, line))
    return *code;
  if (line.output != "-") {
    if (llvm::sys::fs::equivalent(line.output, line.config))
      return fail(rt::kExitBadInput, "'" + line.output + "' is the config itself; name another file to write");
    if (std::error_code error = checkWritable(line.output))
      return fail(rt::kExitBadInput, "cannot write '" + line.output + "': " + error.message());
  }
  static constexpr uint64_t kMostBytes = 1 << 24;
  std::string error;
  auto config = openInput(line.config, kMostBytes, error);
  if (!config)
    return fail(rt::kExitBadInput, error);

  MLIRContext context;
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  OwningOpRef<ModuleOp> module = build(context, line, config->getBuffer(), error);
  if (!module)
    return fail(rt::kExitBadInput, line.config + ": " + error);
  if (failed(verify(*module)))
    return fail(rt::kExitWorkFailed, line.config + ": makes a model that is not valid");
  if (std::error_code problem = writeOutput(line.output, printModel(*module)))
    return fail(rt::kExitWorkFailed, "cannot write '" + line.output + "': " + problem.message());
  return 0;
}
