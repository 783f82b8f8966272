// The `pipe` dialect: stages of a pipeline and their schedules. See dialects/Pipe.
#ifndef SHOAL_DIALECT_PIPE_IR_PIPE_H
#define SHOAL_DIALECT_PIPE_IR_PIPE_H

#include "shoal/Interfaces/KnownAttributes.h"
#include "shoal/Schedule/Schedule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "shoal/Dialect/Pipe/PipeDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Pipe/PipeAttrs.h.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/Pipe/PipeOps.h.inc"

#endif // SHOAL_DIALECT_PIPE_IR_PIPE_H
