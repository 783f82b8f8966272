// A schedule of a user's file.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SCHEDULEFILE_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SCHEDULEFILE_H

#include "shoal/Schedule/Schedule.h"

#include "mlir/IR/Location.h"

namespace shoal::pipe {

/// Diagnoses what cannot be read, by file and line, and what is of another shape than the numbers of `said` that are
/// not 0. `text`: what stands in the file, empty where nobody has read it. `lines`: where each rank stands.
llvm::FailureOr<Schedule> readScheduleFile(mlir::MLIRContext *context, llvm::StringRef path, llvm::StringRef text,
                                           const Shape &said, std::vector<int64_t> *lines = nullptr);

/// Where a fault is told; without a line, one of the whole schedule.
mlir::Location getScheduleFileLoc(mlir::MLIRContext *context, llvm::StringRef path, int64_t line = 0);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SCHEDULEFILE_H
