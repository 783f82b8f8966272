// Control flow over the position as one straight line; see dist-fold-control-flow.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FOLDCONTROLFLOW_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FOLDCONTROLFLOW_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

/// The most ops that a function may unroll to, unless a user says otherwise.
inline constexpr int64_t kMaxUnrolledOps = 100000;

/// Whether anything in the function asks for a value per position.
bool hasControlFlow(mlir::func::FuncOp func);

/// Replaces the body of a function of one block. Emits an error, and leaves the body as it is, when
/// control flow depends on more than the position and constants, when a collective lacks a part of
/// its group, or when the function unrolls to more than `maxOps` ops.
mlir::LogicalResult foldControlFlow(mlir::func::FuncOp func, MeshAttr mesh, int64_t maxOps);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_FOLDCONTROLFLOW_H
