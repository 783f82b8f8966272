// A schedule of a user's file.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SCHEDULEFILE_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SCHEDULEFILE_H

#include "shoal/Schedule/Schedule.h"

#include "mlir/IR/Location.h"

namespace shoal::pipe {

/// Diagnoses what cannot be read, by file and line, and what is of another shape than the numbers of `said` that are
/// not 0.
llvm::FailureOr<Schedule> readScheduleFile(mlir::MLIRContext *context, llvm::StringRef path, const Shape &said);

/// Where faults of the whole schedule are told.
mlir::Location getScheduleFileLoc(mlir::MLIRContext *context, llvm::StringRef path);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SCHEDULEFILE_H
