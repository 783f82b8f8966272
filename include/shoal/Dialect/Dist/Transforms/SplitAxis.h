// A mesh axis in parts, so that two dimensions may share it: what dist-split-axis does, for those who decide.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_SPLITAXIS_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_SPLITAXIS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal::dist {

/// Rewrites an axis of the module's mesh, and all that names it, as parts of these sizes, major to minor;
/// diagnoses sizes that do not multiply to the axis's.
llvm::LogicalResult splitAxis(mlir::ModuleOp module, mlir::StringAttr axis, llvm::ArrayRef<int64_t> factors);

/// Splits those axes of the module's mesh that `mesh` has in parts.
llvm::LogicalResult splitAxesAs(mlir::ModuleOp module, MeshAttr mesh);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_SPLITAXIS_H
