// The `nn` dialect: the model as tensor ops. See dialects/NN.
#ifndef SHOAL_DIALECT_NN_IR_NN_H
#define SHOAL_DIALECT_NN_IR_NN_H

#include "shoal/Dialect/NN/IR/IndexRange.h"
#include "shoal/Dialect/NN/IR/Zigzag.h"
#include "shoal/Interfaces/Differentiable.h"
#include "shoal/Interfaces/KnownAttributes.h"
#include "shoal/Interfaces/Positioned.h"
#include "shoal/Interfaces/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "shoal/Dialect/NN/NNDialect.h.inc"
#include "shoal/Dialect/NN/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/NN/NNAttrs.h.inc"
#include "shoal/Dialect/NN/NNInterfaces.h.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/NN/NNOps.h.inc"

namespace shoal::nn {
/// Which elements a matrix product of `operands` may have: the same, or of bf16 the f32 that it sums in.
bool isProductType(mlir::Type operands, mlir::Type result);
} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_NN_H
