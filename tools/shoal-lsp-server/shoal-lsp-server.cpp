// shoal-lsp-server: MLIR's language server with the dialects that Shoal's files are written in, so
// that editors show the verifiers' messages, documentation and definitions (docs/editors.md).
#include "shoal/Pipelines/Pipelines.h"

#include "shoal-rt/standard_streams.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <pthread.h>

namespace {

struct Invocation {
  int argc;
  char **argv;
  bool failed = true;
};

void *serve(void *argument) {
  auto &invocation = *static_cast<Invocation *>(argument);
  mlir::DialectRegistry registry;
  shoal::registerAllDialects(registry);
  invocation.failed =
      mlir::failed(mlir::MlirLspServerMain(invocation.argc, invocation.argv, registry));
  return nullptr;
}

bool asksForHelp(llvm::StringRef argument) {
  return llvm::StringSwitch<bool>(argument)
      .Cases("-h", "-help", "--help", "-help-hidden", "--help-hidden", true)
      .Cases("-help-list", "--help-list", "-help-list-hidden", "--help-list-hidden", true)
      .Default(false);
}

} // namespace

// The parsers of MLIR and of JSON recurse once per bracket, and an editor sends what its user types.
// The other tools refuse deep nesting; a server has to live on, so it gets a stack for any document
// that an editor can hold. Only what is used of it takes memory.
int main(int argc, char **argv) {
  shoal::rt::openStandardStreams();
  constexpr size_t kStackBytes = size_t(16) << 30;
  Invocation invocation{argc, argv};
  // MLIR's own help, which follows, speaks of MLIR alone.
  if (std::any_of(argv + 1, argv + argc, asksForHelp)) {
    llvm::outs() << "shoal-lsp-server: the language server for Shoal's .mlir files; an editor starts it and speaks "
                    "to it on standard input and output (docs/editors.md says how to set one up).\n\n";
    llvm::outs().flush();
  }
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, kStackBytes) != 0 ||
      pthread_create(&thread, &attributes, serve, &invocation) != 0)
    serve(&invocation); // address space is limited: the stack that there is
  else
    pthread_join(thread, nullptr);
  return invocation.failed;
}
