// Which arguments a step replaces: results that are their next values (`nn.updates`).
#ifndef SHOAL_DIALECT_NN_IR_UPDATES_H
#define SHOAL_DIALECT_NN_IR_UPDATES_H

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>

namespace shoal::nn {

/// Of each result the argument that it replaces in the next step, if any. Asked once for all results of a function,
/// since it reads all arguments.
llvm::SmallVector<std::optional<unsigned>> updatedArguments(mlir::FunctionOpInterface func);

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_UPDATES_H
