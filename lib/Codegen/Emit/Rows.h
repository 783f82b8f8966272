// What blob and report share: which programs a module holds.
#ifndef SHOAL_LIB_CODEGEN_EMIT_ROWS_H
#define SHOAL_LIB_CODEGEN_EMIT_ROWS_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::codegen {

/// A module's rank program, and the evaluation that may stand beside a training program.
struct Programs {
  exec::ProgramOp step, evaluation; // no evaluation: null
};
/// An error when there is none or one too many.
mlir::FailureOr<Programs> findPrograms(mlir::ModuleOp module);

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_EMIT_ROWS_H
