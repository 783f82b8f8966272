// The `dist` dialect: meshes, shardings and collectives. See dialects/Dist.
#ifndef SHOAL_DIALECT_DIST_IR_DIST_H
#define SHOAL_DIALECT_DIST_IR_DIST_H

#include "shoal/Interfaces/Differentiable.h"
#include "shoal/Interfaces/KnownAttributes.h"
#include "shoal/Interfaces/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace shoal::dist {
/// What collectives and messages have an effect on.
struct Communication : mlir::SideEffects::Resource::Base<Communication> {
  llvm::StringRef getName() final { return "Communication"; }
};
} // namespace shoal::dist

#include "shoal/Dialect/Dist/DistDialect.h.inc"
#include "shoal/Dialect/Dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Dist/DistAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "shoal/Dialect/Dist/CollectiveOpInterface.h.inc"
#include "shoal/Dialect/Dist/DistTypes.h.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/Dist/DistOps.h.inc"

namespace shoal::dist {

/// The module's mesh; null when it has none.
MeshOp lookupMesh(mlir::Operation *op);

/// The sharding annotated on a value (function argument, argument of an accumulate's body, or op
/// result), null when none.
ShardingAttr getSharding(mlir::Value value);
/// Annotates a value; results and body arguments of the same op that have none yet become open.
void setSharding(mlir::Value value, ShardingAttr sharding);
/// The sharding annotated on a function result, null when none.
ShardingAttr getResultSharding(mlir::Operation *func, unsigned index);

/// The text of a collective's reason; null without one.
mlir::StringAttr getReasonText(mlir::Attribute reason);

/// The mesh of the enclosing module if it has the name `mesh`; else diagnoses at `op`.
llvm::FailureOr<MeshAttr> getMeshOrEmit(mlir::Operation *op, mlir::FlatSymbolRefAttr mesh);
/// Checks that the sharding fits the type and the mesh: known axes, each used once, rank equal.
llvm::LogicalResult verifySharding(mlir::Operation *op, ShardingAttr sharding, mlir::Type type,
                                   MeshAttr mesh);

/// The two spellings of how partial values combine: of the interfaces and of the dialect.
inline ReduceKindAttrEnum toAttrEnum(ReduceKind kind) {
  return kind == ReduceKind::Sum   ? ReduceKindAttrEnum::sum
         : kind == ReduceKind::Max ? ReduceKindAttrEnum::max
                                   : ReduceKindAttrEnum::min;
}
inline ReduceKind fromAttrEnum(ReduceKindAttrEnum kind) {
  return kind == ReduceKindAttrEnum::sum   ? ReduceKind::Sum
         : kind == ReduceKindAttrEnum::max ? ReduceKind::Max
                                           : ReduceKind::Min;
}

using shoal::shardSize;

/// Whether the op is a collective from one tensor to another, or to a future: no message, no
/// barrier. Passes may move one as long as they move it on all devices alike.
bool isTensorCollective(mlir::Operation *op);
/// Whether a reshard or collective fetches a value for readers behind it, and starts where it stands.
bool isFetch(mlir::Operation *op);
/// Whether the op has an effect that must stay where it is: any other than that of collectives.
bool staysInPlace(mlir::Operation *op);
/// Erases, last to first, the ops of a block that have no effect, or that of a collective, and
/// whose results nothing uses: right where a pass made the collectives, for all devices alike.
void eraseUnread(mlir::Block &block);

/// What an operand of accumulate is in its body, a part per micro-batch; null for another op's operand.
mlir::Value getBodyArgument(mlir::OpOperand &use);

/// Whether an op below is of L2 alone: a collective, a message, a position on the mesh. The program
/// is one device's already; at L1 plans are annotations.
bool isLocalProgram(mlir::Operation *root);
/// Whether arguments or results say which global value they are a piece of, as dist-partition
/// writes it.
bool isMadeByPartitioner(mlir::FunctionOpInterface func);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_DIST_H
