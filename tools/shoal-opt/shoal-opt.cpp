// shoal-opt: every pass and pipeline of the compiler on a file.
#include "shoal/Pipelines/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  shoal::registerAllDialects(registry);
  shoal::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Shoal's passes on MLIR files\n", registry));
}
