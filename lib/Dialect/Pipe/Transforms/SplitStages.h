// The cut of steps into functions of stages, for the passes that need it.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SPLITSTAGES_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SPLITSTAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace shoal::pipe {

/// What `pipe-split` does to every step of the module, for a schedule of so many stages; `splitsBackward`: with I and W.
llvm::LogicalResult splitStages(mlir::ModuleOp module, int64_t stages, bool splitsBackward);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_SPLITSTAGES_H
