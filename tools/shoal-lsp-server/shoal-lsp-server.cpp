// shoal-lsp-server: MLIR's language server with the dialects that Shoal's files are written in, so
// that editors show the verifiers' messages, documentation and definitions (docs/editors.md).
#include "shoal/Pipelines/Pipelines.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  shoal::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
