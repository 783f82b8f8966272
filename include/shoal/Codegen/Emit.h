// A rank program as the runtime reads it, and what it promises: the blob of shoal-rt/program.h and
// the report of shoal-rt/report.h.
#ifndef SHOAL_CODEGEN_EMIT_H
#define SHOAL_CODEGEN_EMIT_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace shoal::rt {
struct Report;
} // namespace shoal::rt

namespace shoal::codegen {

/// A rank program for the runtime: the bytes of `shoal_program`, those of `shoal_evaluation` (empty
/// without one), and the symbols of the kernels in the order by which both number them (the payload's
/// table).
struct Program {
  std::vector<std::string> kernels;
  std::vector<unsigned char> blob;
  std::vector<unsigned char> evaluation;
};

/// Fails, with an error, where something lies in the memory of a device's host: the runtime's table knows one arena.
llvm::LogicalResult checkOneMemory(mlir::ModuleOp module);

/// The module's only exec.program, or its training program and the evaluation beside it. They must
/// satisfy `exec-verify` and `checkOneMemory`. `plan`: what the program tells of its plan, in words; `stages`: what
/// costs are of that it measures of its pipeline's stages.
mlir::FailureOr<Program> emitProgram(mlir::ModuleOp module, llvm::StringRef plan, llvm::StringRef stages = {});

/// Bytes held and sent by each rank in a step (of training, where evaluation stands beside it), counted from the
/// program's types; for shoal-rt/report.h to write as JSON, or for a page (shoal/Report/Page.h). `plan` as above.
mlir::FailureOr<rt::Report> emitReport(mlir::ModuleOp module, llvm::StringRef plan);

} // namespace shoal::codegen

#endif // SHOAL_CODEGEN_EMIT_H
