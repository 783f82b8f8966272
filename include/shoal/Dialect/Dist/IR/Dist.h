// The `dist` dialect: meshes, shardings and collectives. See dialects/Dist.
#ifndef SHOAL_DIALECT_DIST_IR_DIST_H
#define SHOAL_DIALECT_DIST_IR_DIST_H

#include "shoal/Interfaces/Differentiable.h"
#include "shoal/Interfaces/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "shoal/Dialect/Dist/DistDialect.h.inc"
#include "shoal/Dialect/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Dist/DistAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "shoal/Dialect/Dist/DistTypes.h.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/Dist/DistOps.h.inc"

namespace shoal::dist {

/// The module's mesh; null when it has none.
MeshOp lookupMesh(mlir::Operation *op);

/// The sharding annotated on a value (function argument or op result), null when none.
ShardingAttr getSharding(mlir::Value value);
void setSharding(mlir::Value value, ShardingAttr sharding);
/// The sharding annotated on a function result.
ShardingAttr getResultSharding(mlir::Operation *func, unsigned index);

/// Checks that the sharding fits the type and the mesh: known axes, each used once, rank equal.
llvm::LogicalResult verifySharding(mlir::Operation *op, ShardingAttr sharding, mlir::Type type,
                                   MeshAttr mesh);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_DIST_H
