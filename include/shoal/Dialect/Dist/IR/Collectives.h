// Questions about collectives that passes and the interpreter share.
#ifndef SHOAL_DIALECT_DIST_IR_COLLECTIVES_H
#define SHOAL_DIALECT_DIST_IR_COLLECTIVES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace shoal::dist {

/// The tensor that a value of the type is, or that is on its way to be (`!dist.future`); null for other values.
mlir::RankedTensorType getTensorType(mlir::Type type);
inline mlir::RankedTensorType getTensorType(mlir::Value value) { return getTensorType(value.getType()); }

/// Whether two collectives do the same to what they are given, for whatever reasons: but for attributes that are
/// ignored.
bool doTheSame(mlir::Operation *a, mlir::Operation *b, llvm::function_ref<bool(llvm::StringRef)> isIgnored);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_COLLECTIVES_H
