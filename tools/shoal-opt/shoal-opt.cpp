// shoal-opt: every pass and pipeline of the compiler on a file.
#include "shoal/Pipelines/Pipelines.h"
#include "shoal/Support/Files.h"

#include "shoal-rt/standard_streams.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

// MlirOptMain with one step more: the text is looked at before it is parsed.
int main(int argc, char **argv) {
  shoal::rt::openStandardStreams();
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  shoal::registerAllDialects(registry);
  shoal::registerAllPasses();
  auto [inputName, outputName] = mlir::registerAndParseCLIOptions(
      argc, argv, "Shoal's passes on MLIR files\n", registry);
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects()) {
    llvm::outs() << "Available Dialects: ";
    llvm::interleave(registry.getDialectNames(), llvm::outs(), ",");
    llvm::outs() << "\n";
    return 0;
  }

  shoal::ModelTextProblem problem;
  std::unique_ptr<llvm::MemoryBuffer> input = shoal::openModel(inputName, problem);
  if (!input) {
    if (problem.line)
      llvm::errs() << inputName << ":" << problem.line << ":" << problem.column << ": ";
    llvm::errs() << "error: " << problem.message << "\n";
    return 1;
  }
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> output = mlir::openOutputFile(outputName, &message);
  if (!output) {
    llvm::errs() << message << "\n";
    return 1;
  }
  if (mlir::failed(mlir::MlirOptMain(output->os(), std::move(input), registry, config)))
    return 1;
  output->keep();
  return 0;
}
