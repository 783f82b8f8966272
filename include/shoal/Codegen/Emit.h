// A rank program as the runtime reads it, and what it promises: the blob of shoal-rt/program.h and the report of
// shoal-rt/report.h.
#ifndef SHOAL_CODEGEN_EMIT_H
#define SHOAL_CODEGEN_EMIT_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include <string>
#include <vector>

namespace shoal::codegen {

/// The only rank program of a module; an error when there is none or a second one.
mlir::FailureOr<exec::ProgramOp> findProgram(mlir::ModuleOp module);

/// The symbols of the kernels in the order by which the blob numbers them: the payload's table.
std::vector<std::string> kernelTable(mlir::ModuleOp module);

/// The bytes of `shoal_program`. The program must satisfy `exec-verify`.
std::vector<unsigned char> emitBlob(exec::ProgramOp program);

/// Bytes held and sent by each rank in a step, counted from the program's types.
std::string emitReport(exec::ProgramOp program);

} // namespace shoal::codegen

#endif // SHOAL_CODEGEN_EMIT_H
