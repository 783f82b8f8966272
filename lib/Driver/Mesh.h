// Which mesh a model is compiled for.
#ifndef SHOAL_LIB_DRIVER_MESH_H
#define SHOAL_LIB_DRIVER_MESH_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Driver/Driver.h"

namespace shoal {

/// Makes the module's mesh the one of the options, or a mesh of one device when neither has any.
llvm::LogicalResult setMesh(mlir::ModuleOp module, const CompilerOptions &options);

/// As --mesh writes it: "data=2,tensor=2".
std::string spellMesh(dist::MeshAttr mesh);

/// Every option that was given for a mesh axis finds it.
llvm::LogicalResult checkAxes(mlir::ModuleOp module, const CompilerOptions &options);

} // namespace shoal

#endif // SHOAL_LIB_DRIVER_MESH_H
